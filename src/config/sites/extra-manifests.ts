import { digestOf } from '../../base/digest.ts';
import { parseAllDocuments } from 'yaml';
import { findYamlExcess } from '../../base/yaml-bounds.ts';
import type { ConfigProblem } from '../document/problem.ts';
import type { Site, SiteFile } from './site.ts';

const FOLDER = 'extra-manifests/';
const EXTENSION = /\.(?:yaml|yml|json)$/;
/** Longer names are not safe with every reader of the media. */
const LONGEST_NAME = 30;
/** Manifests above this size are not parsed. */
const MAX_PARSED = 1 << 20;

/** Files that lie flat in extra-manifests and have an extension of manifests, sorted by their bytes. */
export const listExtraManifests = (files: readonly SiteFile[]): Site['extraManifests'] =>
  files
    .filter(({ path }) => isManifest(path))
    .map(({ path, bytes }) => ({ name: path.slice(FOLDER.length), bytes }))
    .toSorted((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)));

const isManifest = (path: string): boolean =>
  path.startsWith(FOLDER) && !path.slice(FOLDER.length).includes('/') && EXTENSION.test(path);

/** Extra manifests go to the node as they are; what it will not take is only warned of. */
export function warnOfExtraManifests(files: readonly SiteFile[]): readonly ConfigProblem[] {
  return files
    .filter(({ path }) => path.startsWith(FOLDER))
    .flatMap((file) => {
      if (!isManifest(file.path)) {
        const what = 'is ignored: extra manifests are *.yaml, *.yml and *.json without folders';
        return [warn(file, what)];
      }
      const { length } = file.path.slice(FOLDER.length);
      const fault = findFault(file.bytes);
      return [
        ...(length > LONGEST_NAME
          ? [warn(file, `the name has ${length} characters, more than ${LONGEST_NAME}`)]
          : []),
        ...(fault ? [warn(file, `the node cannot read it: ${fault.problem}`, fault)] : []),
      ];
    });
}

type Place = { readonly line: number; readonly column: number };

const warn = (
  { shownAs }: SiteFile,
  problem: string,
  { line, column }: Place = { line: 1, column: 1 },
): ConfigProblem => ({ file: shownAs, line, column, path: '', problem, lineText: '' });

type Fault = Place & { readonly problem: string };

/** Sites of a fleet share their manifests: as many results are kept. */
const KEPT = 1000;
const kept = new Map<string, Fault | undefined>();

function findFault(bytes: Uint8Array): Fault | undefined {
  if (bytes.length > MAX_PARSED) return undefined;
  const key = digestOf(bytes);
  if (kept.has(key)) return kept.get(key);
  const fault = parse(bytes);
  if (kept.size >= KEPT) kept.clear();
  kept.set(key, fault);
  return fault;
}

function parse(bytes: Uint8Array): Fault | undefined {
  const text = new TextDecoder().decode(bytes);
  const excess = findYamlExcess(text);
  if (excess) return { ...placeOf(text, excess.offset), problem: excess.message };
  const documents = parseAllDocuments(text, { logLevel: 'silent' });
  const [error] = 'empty' in documents ? [] : documents.flatMap(({ errors }) => errors);
  if (!error) return undefined;
  const [{ line, col } = { line: 1, col: 1 }] = error.linePos ?? [];
  const problem = error.code.toLowerCase().replaceAll('_', ' ');
  return { line, column: col, problem };
}

function placeOf(text: string, offset: number): Place {
  const before = text.slice(0, offset).split('\n');
  return { line: before.length, column: (before.at(-1) ?? '').length + 1 };
}
