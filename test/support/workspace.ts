import { mkdir, rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { runProcess } from '../../src/base/process.ts';
import { startPlainRegistry } from './plain-registry.ts';

/** From an image of a registry to `repository:tag` of the mirror. */
export type Copy = readonly [from: string, to: string];

/** Host of the registry that was mirrored to: nothing listens there. */
export const MIRROR_HOST = 'mirror.example.com:5000';

/** A digest mirror set in the form that oc-mirror v2 writes it. */
export const formatMirrorSet = (
  name: string,
  entries: readonly (readonly [source: string, mirror: string])[],
): string =>
  [
    '---',
    'apiVersion: config.openshift.io/v1',
    'kind: ImageDigestMirrorSet',
    'metadata:',
    '  annotations:',
    '    createdAt: "2026-01-01T00:00:00Z"',
    '    createdBy: oc-mirror v2',
    `  name: ${name}`,
    'spec:',
    '  imageDigestMirrors:',
    ...entries.flatMap(([source, mirror]) => [
      '  - mirrors:',
      `    - ${mirror}`,
      `    source: ${source}`,
    ]),
    '',
  ].join('\n');

/**
 * Writes an oc-mirror workspace: the tree by Debian's docker-registry through skopeo, the resources as
 * they are given, by file name.
 */
export async function writeWorkspace(
  directory: string,
  copies: readonly Copy[],
  resources: Readonly<Record<string, string>>,
): Promise<void> {
  const registry = await startPlainRegistry(`${directory}.registry`);
  try {
    for (const [from, to] of copies) {
      await runProcess('skopeo', [
        ...['copy', '--quiet', '--multi-arch', 'all', '--preserve-digests'],
        ...['--src-tls-verify=false', '--dest-tls-verify=false'],
        ...[`docker://${from}`, `docker://${registry.host}/${to}`],
      ]);
    }
  } finally {
    await registry.close();
  }
  await mkdir(join(directory, 'working-dir/cluster-resources'), { recursive: true });
  await rename(`${directory}.registry/store`, join(directory, 'data'));
  for (const [name, text] of Object.entries(resources)) {
    const file = join(directory, 'working-dir/cluster-resources', name);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text);
  }
}
