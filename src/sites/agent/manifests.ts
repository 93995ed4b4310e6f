import type { DocumentProblem } from '../../base/errors.ts';
import type { AgentCluster } from '../../openshift/agent/agent-cluster.ts';
import { cutDocuments, isBlankPiece } from '../manifest-pieces.ts';
import { createManifestProblem, findManifestFaults } from '../manifests.ts';
import { MANIFESTS_OF, type SiteFile } from '../site.ts';

/* Owns the manifests that a cluster gets when it is installed, from the folder openshift of its site. */

const MANIFEST_FOLDER = `${MANIFESTS_OF.agent}/`;

const MANIFEST = /^openshift\/[^/]+\.ya?ml$/;

/** Manifests as they are written, by their names in the folder. */
export const listManifestFiles = (
  files: readonly SiteFile[],
): readonly (Pick<SiteFile, 'bytes'> & { readonly name: string })[] =>
  files
    .filter(({ path }) => MANIFEST.test(path))
    .map(({ path, bytes }) => ({ name: path.slice(MANIFEST_FOLDER.length), bytes }));

/** The rendezvous host hands each document on as a file of its own. */
export const listAgentManifests = (files: readonly SiteFile[]): AgentCluster['manifests'] =>
  listManifestFiles(files)
    .toSorted((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)))
    .flatMap(({ name: file, bytes }) => {
      const [, name = '', extension = ''] = /^(.*)(\.ya?ml)$/.exec(file) ?? [];
      return cutDocuments(Buffer.from(bytes).toString('utf8'))
        .filter((piece) => !isBlankPiece(piece))
        .map(({ text }, index) => ({
          name: `${name}-${index}${extension}`,
          bytes: Buffer.from(text.replace(/^---[^\n]*\n/, '')),
        }));
    });

const START = { line: 1, column: 1 };

export const checkAgentManifests = (files: readonly SiteFile[]): readonly DocumentProblem[] =>
  files
    .filter(({ path }) => MANIFEST.test(path))
    .flatMap((file) =>
      findManifestFaults(file.bytes)
        .filter(({ problem }) => !/ (?:is empty|has only comments)$/.test(problem))
        .map((fault) =>
          createManifestProblem(file, {
            ...fault,
            problem: `the cluster cannot apply it: ${fault.problem}`,
          }),
        ),
    );

/** Other files in folders, which openshift-install leaves out as well. */
export const warnOfAgentManifests = (files: readonly SiteFile[]): readonly DocumentProblem[] =>
  files
    .filter(({ path }) => path.includes('/') && !MANIFEST.test(path))
    .map((file) =>
      createManifestProblem(file, {
        ...START,
        problem: 'is ignored: manifests are *.yaml and *.yml in openshift, without folders',
      }),
    );
