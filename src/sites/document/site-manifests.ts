import type { DocumentProblem } from '../../base/errors.ts';
import { findManifestFaults } from './manifest-documents.ts';
import type { Site, SiteFile } from '../site.ts';

const FOLDER = 'extra-manifests/';
const EXTENSION = /\.(?:yaml|yml|json)$/;
/** The node applies files one by one; what other files a kustomization names, it does not ask. */
const KUSTOMIZATION = /^kustomization\.ya?ml$/i;
/** Longer names are not safe with every reader of the media. */
const LONGEST_NAME = 30;
/** Manifests above this size are not parsed. */
const MAX_PARSED = 1 << 20;

/** Files that lie flat in extra-manifests and have an extension of manifests, sorted by their bytes. */
export const listExtraManifests = (files: readonly SiteFile[]): Site['extraManifests'] =>
  files
    .filter(isManifest)
    .map(({ path, bytes }) => ({ name: path.slice(FOLDER.length), bytes }))
    .toSorted((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)));

const isManifest = ({ path }: SiteFile): boolean =>
  path.startsWith(FOLDER) && !path.slice(FOLDER.length).includes('/') && EXTENSION.test(path);

/** Manifests go on the ISO as they are, and a node that cannot apply one of them never finishes. */
export const checkExtraManifests = (files: readonly SiteFile[]): readonly DocumentProblem[] =>
  files.filter(isManifest).flatMap((file) => {
    if (KUSTOMIZATION.test(file.path.slice(FOLDER.length))) {
      const problem = 'the node cannot apply a kustomization';
      return [createProblem(file, { ...START, problem, hint: 'put what it renders here instead' })];
    }
    if (file.bytes.length > MAX_PARSED) return [];
    return findManifestFaults(file.bytes).map((fault) =>
      createProblem(file, { ...fault, problem: `the node cannot apply it: ${fault.problem}` }),
    );
  });

/** What is left out, and names that some readers cut. */
export const warnOfExtraManifests = (files: readonly SiteFile[]): readonly DocumentProblem[] =>
  files
    .filter(({ path }) => path.startsWith(FOLDER))
    .flatMap((file) => {
      if (!isManifest(file)) {
        const problem = 'is ignored: extra manifests are *.yaml, *.yml and *.json without folders';
        return [createProblem(file, { ...START, problem })];
      }
      const { length } = file.path.slice(FOLDER.length);
      const problem = `the name has ${length} characters, more than ${LONGEST_NAME}`;
      return length > LONGEST_NAME ? [createProblem(file, { ...START, problem })] : [];
    });

const START = { line: 1, column: 1 };

type Finding = Pick<DocumentProblem, 'line' | 'column' | 'problem' | 'hint'>;

const createProblem = ({ shownAs }: SiteFile, finding: Finding): DocumentProblem => ({
  severity: 'error',
  code: 'sites.manifest',
  file: shownAs,
  path: '',
  lineText: '',
  ...finding,
});
