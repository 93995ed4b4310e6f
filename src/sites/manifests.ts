import { isText } from '../base/text/utf8.ts';
import {
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Document,
  type Node,
  type YAMLMap,
} from 'yaml';
import { digestOf } from '../base/digest.ts';
import type { DocumentProblem } from '../base/errors.ts';
import { append, objectOrEmpty, withoutUndefined } from '../base/lists.ts';
import { joinProblem } from '../base/text/words.ts';
import { findPayloadFaults } from '../openshift/node/payloads.ts';
import { parseDocument, findYamlExcess, explainYaml } from '../shape/parse-text.ts';
import { cutDocuments, isBlank, type ManifestPiece, PIECE, SEPARATOR } from './manifest-pieces.ts';
import { type ImageBasedSite, MANIFESTS_OF, type SiteFile } from './site.ts';

/* Owns the rules of extra manifests, which the node applies without any further check. */

/** The reason why the node cannot apply a manifest. */
type ManifestFault = Pick<DocumentProblem, 'line' | 'column' | 'problem' | 'hint'>;

type At = (offset: number, problem: string, hint?: string) => ManifestFault;

const FOLDER = `${MANIFESTS_OF['image-based']}/`;

/** The node applies files one by one; it does not ask which other files a kustomization names. */
const KUSTOMIZATION = /^kustomization\.ya?ml$/i;

const MAX_PARSED = 1 << 20;

const START = { line: 1, column: 1 };

/** Manifests go on the ISO unchanged, and a node that cannot apply one of them never finishes. */
export const checkExtraManifests = (files: readonly SiteFile[]): readonly DocumentProblem[] =>
  files.filter(isManifest).flatMap((file) => {
    if (KUSTOMIZATION.test(file.path.slice(FOLDER.length))) {
      const problem = 'the node cannot apply a kustomization';
      return [
        createManifestProblem(file, {
          ...START,
          problem,
          hint: 'put the manifests that it renders here instead',
        }),
      ];
    }
    if (file.bytes.length > MAX_PARSED) return [];
    return findManifestFaults(file.bytes).map((fault) =>
      createManifestProblem(file, {
        ...fault,
        problem: `the node cannot apply it: ${fault.problem}`,
      }),
    );
  });

/** Files directly in extra-manifests that have the extension of a manifest, sorted by their bytes. */
export const listExtraManifests = (files: readonly SiteFile[]): ImageBasedSite['extraManifests'] =>
  files
    .filter(isManifest)
    .map(({ path, bytes }) => ({ name: path.slice(FOLDER.length), bytes }))
    .toSorted((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)));

/** Some readers of the media do not handle longer names. */
const LONGEST_NAME = 30;

/** Warns of files that are left out, and of names that some readers cut. */
export const warnOfExtraManifests = (files: readonly SiteFile[]): readonly DocumentProblem[] =>
  files
    .filter(({ path }) => path.includes('/'))
    .flatMap((file) => {
      if (!isManifest(file)) {
        const problem =
          'is ignored: manifests are *.yaml, *.yml and *.json in extra-manifests, without folders';
        return [createManifestProblem(file, { ...START, problem })];
      }
      const { length } = file.path.slice(FOLDER.length);
      const problem = `the name has ${length} characters, more than ${LONGEST_NAME}`;
      return length > LONGEST_NAME ? [createManifestProblem(file, { ...START, problem })] : [];
    });

/** Sites of a fleet share their manifests, so this many results are cached. */
const CACHED = 1000;
const cached = new Map<string, readonly ManifestFault[]>();

/**
 * Finds the faults of each document of a manifest, by the rules of lifecycle-agent
 * (`lca-cli/postpivot/postpivot.go`, `applyManifests`). It stops at the first document that is not
 * an object with apiVersion, kind and name, or a list of such objects in `items`.
 */
export function findManifestFaults(bytes: Uint8Array): readonly ManifestFault[] {
  const key = digestOf(bytes);
  const known = cached.get(key);
  if (known) return known;
  const faults = isText(bytes) ? listFaults(Buffer.from(bytes).toString('utf8')) : [NOT_TEXT];
  if (cached.size >= CACHED) cached.clear();
  cached.set(key, faults);
  return faults;
}

/** Kubernetes' YAML reader stops at it, on a node that is already installed. */
const NOT_TEXT: ManifestFault = { ...START, problem: 'this is not UTF-8' };

/** More faults than a user fixes before the next try. */
const MOST_FAULTS = 20;

function listFaults(text: string): readonly ManifestFault[] {
  const faults: ManifestFault[] = [];
  for (const piece of cutDocuments(text)) {
    append(faults, checkDocument(piece));
    if (faults.length >= MOST_FAULTS) break;
  }
  return faults.slice(0, MOST_FAULTS);
}

const SEPARATOR_HINT = 'write "---" on its own line';

const BLANK_HINT = 'remove the "---" that separates it';

function checkDocument({ number, line, text }: ManifestPiece): readonly ManifestFault[] {
  const lines = new LineCounter();
  const name = `document ${number}`;
  const at = (offset: number, problem: string, hint?: string): ManifestFault => {
    const place = lines.linePos(offset);
    return {
      line: line - 1 + Math.max(1, place.line),
      column: Math.max(1, place.col),
      problem: `${name} ${problem}`,
      ...withoutUndefined({ hint }),
    };
  };
  const excess = findYamlExcess(text);
  if (excess) return [at(0, `cannot be read: ${excess.message}`)];
  const separator = SEPARATOR.exec(text);
  if (separator) return [at(0, 'begins with more than "---" on its line', SEPARATOR_HINT)];
  const document = parseDocument(text, { ...PIECE, lineCounter: lines });
  const [error] = document.errors;
  if (error) return [at(error.pos[0], `cannot be read: ${explainYaml(error.code)}`)];
  return isBlank(document) ? [at(0, explainBlank(text), BLANK_HINT)] : checkObject(document, at);
}

const explainBlank = (text: string): string =>
  text.includes('#') ? 'has only comments' : 'is empty';

function checkObject(document: Document.Parsed, at: At): readonly ManifestFault[] {
  const { contents } = document;
  if (!isMap(contents)) return [at(offsetOf(contents), 'is not an object')];
  const read = (map: YAMLMap, key: string): Node | undefined => readMember(document, map, key);
  const items = read(contents, 'items');
  if (items) return checkItems(document, items, at);
  const faults = checkIdentity(contents, read);
  const payload = checkPayload(document, { path: [], map: contents }, at);
  const offset = offsetOf(contents);
  if (textOf(read(contents, 'kind')) === 'List') {
    return [at(offset, 'is a List without items', 'write its objects below "items"')];
  }
  return faults.length === 0 ? payload : [at(offset, `has no ${faults.join(' and no ')}`)];
}

type Placed = { readonly path: readonly (string | number)[]; readonly map: YAMLMap };

/** Faults of a Secret or a ConfigMap, which the API refuses. */
const checkPayload = (
  document: Document.Parsed,
  { path, map }: Placed,
  at: At,
): readonly ManifestFault[] =>
  findPayloadFaults(objectOrEmpty(readValue(document, map))).map((fault) => {
    const node = document.getIn([...path, ...fault.path], true);
    const offset = isNode(node) ? offsetOf(node) : offsetOf(map);
    return at(offset, `cannot be stored: ${joinProblem(fault.path.join('.'), fault.problem)}`);
  });

/** The value of a mapping; undefined if an alias or a merge key in it cannot be resolved. */
function readValue(document: Document.Parsed, map: YAMLMap): unknown {
  try {
    return map.toJS(document);
  } catch (cause) {
    if (!(cause instanceof Error)) throw cause;
    return undefined;
  }
}

/** The node takes every object of `items` unchanged, regardless of the kind of the list. */
function checkItems(document: Document.Parsed, items: Node, at: At): readonly ManifestFault[] {
  if (!isSeq(items)) return [at(offsetOf(items), 'has "items" that are not a list')];
  return items.items.flatMap((item, index) => {
    const target = follow(document, item as Node | null);
    const offset = target?.range?.[0] ?? items.range?.[0] ?? 0;
    if (!isMap(target)) return [at(offset, `has an item ${index + 1} that is not an object`)];
    const faults = checkIdentity(target, (map, key) => readMember(document, map, key));
    return faults.length === 0
      ? checkPayload(document, { path: ['items', index], map: target }, at)
      : [at(offset, `has an item ${index + 1} without ${faults.join(' and ')}`)];
  });
}

const offsetOf = (node: Node | null): number => node?.range?.[0] ?? 0;

type Read = (map: YAMLMap, key: string) => Node | undefined;

/** The names of the missing members without which no object can be applied. */
function checkIdentity(map: YAMLMap, read: Read): readonly string[] {
  const metadata = read(map, 'metadata');
  const name = isMap(metadata) ? read(metadata, 'name') : undefined;
  return [
    ...(textOf(read(map, 'apiVersion')) === '' ? ['apiVersion'] : []),
    ...(textOf(read(map, 'kind')) === '' ? ['kind'] : []),
    ...(textOf(name) === '' ? ['metadata.name'] : []),
  ];
}

/** Also reads out of a mapping that is merged in with `<<` (YAML 1.1). */
function readMember(document: Document.Parsed, map: YAMLMap, key: string): Node | undefined {
  const find = (name: string): Node | undefined => {
    const pair = map.items.find((each) => isScalar(each.key) && each.key.source === name);
    return follow(document, (pair?.value ?? null) as Node | null);
  };
  const own = find(key);
  if (own) return own;
  const merged = find('<<');
  const maps = isSeq(merged) ? merged.items : [merged];
  return maps
    .map((each) => follow(document, (each ?? null) as Node | null))
    .filter((each) => isMap(each))
    .map((each) => readMember(document, each, key))
    .find((each) => each !== undefined);
}

const follow = (document: Document.Parsed, node: Node | null): Node | undefined =>
  (isAlias(node) ? node.resolve(document) : node) ?? undefined;

const textOf = (node: Node | undefined): string =>
  isScalar(node) && typeof node.value === 'string' ? node.value : '';

const EXTENSION = /\.(?:yaml|yml|json)$/;

const isManifest = ({ path }: SiteFile): boolean =>
  path.startsWith(FOLDER) && !path.slice(FOLDER.length).includes('/') && EXTENSION.test(path);

type Finding = Pick<DocumentProblem, 'line' | 'column' | 'problem' | 'hint'>;

export const createManifestProblem = (
  { shownAs }: SiteFile,
  finding: Finding,
): DocumentProblem => ({
  severity: 'error',
  code: 'sites.manifest',
  file: shownAs,
  path: '',
  lineText: '',
  ...finding,
});
