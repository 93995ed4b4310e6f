import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Digest } from '../../src/base/digest.ts';
import type { LiveWorld } from './live-iso.ts';
import { startScriptedRegistry, type ScriptedRegistry } from './scripted-registry.ts';

/** A registry that does as it is told, with all that the live world's registry has. */
export type FaultyRegistry = ScriptedRegistry & {
  /** The layer that no image but `etcd` has. */
  readonly layer: { readonly digest: Digest; readonly size: number };
};

type Document = {
  readonly config: { readonly digest: Digest };
  readonly layers: readonly { readonly digest: Digest; readonly size: number }[];
};

export async function copyToFaultyRegistry(world: LiveWorld): Promise<FaultyRegistry> {
  const registry = await startScriptedRegistry();
  const get = async (path: string): Promise<Buffer> => {
    const response = await fetch(`http://${world.registry.host}/v2/${path}`);
    if (!response.ok) throw new Error(`${path}: ${response.status}`);
    return Buffer.from(await response.arrayBuffer());
  };
  const copy = async (repository: string, digest: Digest): Promise<Document> => {
    const bytes = await get(`${repository}/manifests/${digest}`);
    const document = JSON.parse(bytes.toString()) as Document;
    if (registry.addManifest(document).digest !== digest) throw new Error('a manifest changed');
    for (const blob of [document.config, ...document.layers]) {
      registry.addBlob(await get(`${repository}/blobs/${blob.digest}`));
    }
    return document;
  };
  await copy('ocp/release', world.release.digest);
  let layer: FaultyRegistry['layer'] | undefined;
  for (const [name, digest] of Object.entries(world.release.components)) {
    const document = await copy('ocp/art-dev', digest);
    if (name === 'etcd') layer = document.layers.at(-1);
  }
  if (!layer) throw new Error('the release has etcd');
  return { ...registry, layer };
}

/** A registries.conf that asks these hosts, in order, for all that the world's registry has. */
export async function redirectWorld(world: LiveWorld, hosts: readonly string[]): Promise<void> {
  const last = hosts.at(-1) ?? world.registry.host;
  const mirrors = hosts
    .slice(0, -1)
    .map((host) => `[[registry.mirror]]\nlocation = "${host}"\ninsecure = true\n`);
  const text = `[[registry]]\nprefix = "${world.registry.host}"\nlocation = "${last}"\ninsecure = true\n`;
  await writeFile(join(world.directory, 'registries.conf'), text + mirrors.join(''));
}
