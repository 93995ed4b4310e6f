import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeBaseIso } from './base-iso.ts';
import { publishCatalog } from './catalog.ts';
import { createBlobFactory } from './payload.ts';
import { buildImage, makeCoreComponents, packLayer, publishRelease } from './release.ts';
import { SIGNATURE_SETTINGS } from './release-signer.ts';
import { GRAPH, SIGNATURES, startSourceRegistry, type SourceRegistry } from './source-registry.ts';

const MIB = 1024 * 1024;
const VERSION = '4.21.0';
const NAMES = [
  'agent-installer-api-server',
  'agent-installer-node-agent',
  'agent-installer-orchestrator',
  'cli',
  'cluster-version-operator',
  'console',
  'coredns',
  'etcd',
  'haproxy-router',
  'hyperkube',
  'machine-config-operator',
  'must-gather',
  'oauth-server',
  'ovn-kubernetes',
  'pod',
  'prometheus',
  'rhel-coreos',
];

/** Everything that a build asks the network for, on loopback. */
export type DemoWorld = {
  /** With it, the program finds registries, update graph and signatures on loopback. */
  readonly env: Readonly<Record<string, string>>;
  readonly close: () => Promise<void>;
};

/**
 * A registry on loopback that stands for quay.io and registry.redhat.io, with a small release of the real
 * shape, so that the configuration that `sealift init` writes builds as it is. Writes into the directory a
 * pull secret of nobody, a registries.conf, and the key that signed the release.
 */
export async function startDemoWorld(directory: string): Promise<DemoWorld> {
  const registry = await startSourceRegistry();
  await publishAll(registry, directory);
  registry.signer.write(directory);
  const files = {
    'registries.conf': registriesConf(registry.host),
    'pull-secret.json': PULL_SECRET,
  };
  for (const [name, text] of Object.entries(files)) {
    await writeFile(join(directory, name), text, { mode: 0o600 });
  }
  const url = `http://${registry.host}`;
  return {
    env: {
      CONTAINERS_REGISTRIES_CONF: join(directory, 'registries.conf'),
      OCP_SIGNATURE_URL: `${url}${SIGNATURES}`,
      OCP_SIGNATURE_VERIFICATION_PK: join(directory, SIGNATURE_SETTINGS.signatureKeys),
      UPDATE_URL_OVERRIDE: `${url}${GRAPH}`,
    },
    close: () => registry.close(),
  };
}

const HOSTS = ['quay.io', 'registry.redhat.io'] as const;

/** A secret of nobody: the registry on loopback asks for none. */
const PULL_SECRET = JSON.stringify({
  auths: Object.fromEntries(HOSTS.map((host) => [host, { auth: 'ZGVtbzpub3QtYS1zZWNyZXQ=' }])),
});

const registriesConf = (location: string): string =>
  HOSTS.map(
    (prefix) => `[[registry]]\nprefix = "${prefix}"\nlocation = "${location}"\ninsecure = true\n`,
  ).join('');

async function publishAll(registry: SourceRegistry, directory: string): Promise<void> {
  const [quay, redhat] = HOSTS;
  const makeBlob = createBlobFactory();
  const shared = [makeBlob(0, 8 * MIB), makeBlob(1, 3 * MIB)];
  const base = join(directory, 'base.iso');
  await makeBaseIso(base, 12 * MIB);
  const components = await makeCoreComponents(await readFile(base), shared);
  await rm(base);
  await rm(`${base}.empty`, { force: true });
  for (const [index, name] of NAMES.entries()) {
    const own = [makeBlob(10 + index, (1 + (index % 5)) * MIB + index * 1000)];
    components.set(name, buildImage([...shared, ...own]));
  }
  const lowest = shared.slice(0, 1);
  const tools = buildImage([...lowest, await packLayer({ 'usr/bin/tool': 'tool\n' })]);
  registry.add('rhel9/support-tools', tools, 'latest');
  await publishCatalog(registry, { makeBlob, shared, host: redhat });
  const payload = await publishRelease(registry, { version: VERSION, components, host: quay });
  registry.publishGraph([{ version: VERSION, payload }]);
}
