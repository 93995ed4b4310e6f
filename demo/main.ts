import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { makeBaseIso } from './base-iso.ts';
import { CATALOG_REPOSITORY, publishCatalog } from './catalog.ts';
import { createBlobFactory } from './payload.ts';
import { buildImage, makeCoreComponents, packLayer, publishRelease } from './release.ts';
import { SIGNATURE_SETTINGS } from './release-signer.ts';
import { SIGNATURES, startSourceRegistry, type SourceRegistry } from './source-registry.ts';

const MIB = 1024 * 1024;
const VERSION = '4.21.0';
const SEALIFT = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url));
const NAMES = [
  ...['agent-installer-api-server', 'agent-installer-node-agent', 'agent-installer-orchestrator'],
  ...['cli', 'cluster-version-operator', 'console', 'coredns', 'etcd', 'haproxy-router'],
  ...['hyperkube', 'machine-config-operator', 'must-gather', 'oauth-server', 'ovn-kubernetes'],
  ...['pod', 'prometheus', 'rhel-coreos'],
];

/**
 * The main jobs on a machine that has nothing but Node: a small release, a live ISO, a proof, and the
 * configuration ISOs of two sites.
 */
async function main(): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'sealift-demo-'));
  console.log('Starting a source registry on loopback with a small release of the real shape ...');
  const registry = await startSourceRegistry();
  try {
    const pullspec = await publishDemo(registry, directory);
    registry.signer.write(directory);
    await writeFile(join(directory, 'registries.conf'), ''); // whatever mirrors this machine has
    await writeFile(join(directory, 'appliance-config.yaml'), configOf(pullspec, registry.host));
    for (const args of [
      ['validate'],
      ['plan'],
      ['build', 'live-iso', '--output', 'live.iso'],
      ['verify', 'live.iso'],
      ['inspect', 'live.iso'],
      ['init', '--template', 'sites', 'field'],
      ['config-iso', 'validate', 'field/sites.csv', '--template', 'field/template'],
      ['config-iso', 'build', 'field/sites.csv', '--template', 'field/template', '--out', 'isos'],
    ]) {
      console.log(`\n$ sealift ${args.join(' ')}`);
      await runSealift(args, directory, registry);
      if (args[0] === 'init') await nameSecret(join(directory, 'field/template'));
    }
  } finally {
    await registry.close();
  }
  console.log(
    [
      '',
      'What to look at:',
      `  cd ${directory}`,
      `  npx --prefix ${fileURLToPath(new URL('..', import.meta.url))} sealift ls live.iso /registry`,
      '  sealift ignition show live.iso          what the hosts will apply',
      '  sealift registry serve live.iso         the payload, straight out of the ISO',
      '  live.iso.report.json                    what was built from what',
      '  isos/sites.json                         the configuration ISOs of two sites',
    ].join('\n'),
  );
}

async function publishDemo(registry: SourceRegistry, directory: string): Promise<string> {
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
  const tools = buildImage([
    shared[0] ?? makeBlob(0, 1),
    await packLayer({ 'usr/bin/tool': 'tool\n' }),
  ]);
  registry.add('rhel9/support-tools', tools, 'latest');
  await publishCatalog(registry, { makeBlob, shared });
  return publishRelease(registry, { version: VERSION, components });
}

const configOf = (pullspec: string, host: string): string =>
  [
    'apiVersion: v1beta1',
    'kind: ApplianceConfig',
    'ocpRelease:',
    `  version: "${VERSION}"`,
    `  url: ${pullspec}`,
    `pullSecret: '{"auths":{"${host}":{"auth":"ZGVtbzpkZW1v"}}}'`,
    'enableInteractiveFlow: true',
    'useDefaultSourceNames: true',
    'operators:',
    `  - catalog: ${host}/${CATALOG_REPOSITORY}:v4.21`,
    '    packages:',
    '      - name: demo-storage-operator',
    '      - name: demo-network-operator',
    'additionalImages:',
    `  - name: ${host}/rhel9/support-tools:latest`,
    'build:',
    '  registriesConf: registries.conf',
    '',
  ].join('\n');

/** What the next step of `init` asks for. */
async function nameSecret(template: string): Promise<void> {
  const path = join(template, 'install-config.yaml');
  const text = await readFile(path, 'utf8');
  await writeFile(path, text.replace(/^pullSecret: .*$/m, 'pullSecret: env:DEMO_PULL_SECRET'));
}

/** A secret of nobody: the sites of the demo are never installed. */
const ENV = {
  ...process.env,
  DEMO_PULL_SECRET: '{"auths":{"registry.example.com":{"auth":"ZGVtbzpkZW1v"}}}',
};

async function runSealift(
  args: readonly string[],
  cwd: string,
  { host }: SourceRegistry,
): Promise<void> {
  const env = {
    ...ENV,
    OCP_SIGNATURE_URL: `http://${host}${SIGNATURES}`, // the throw-away key signed the release
    OCP_SIGNATURE_VERIFICATION_PK: SIGNATURE_SETTINGS.signatureKeys,
  };
  const child = spawn(process.execPath, [SEALIFT, ...args], { cwd, stdio: 'inherit', env });
  const code = await new Promise<number | null>((resolve) => child.on('exit', resolve));
  if (code !== 0) throw new Error(`sealift ${args.join(' ')} ended with ${code ?? 'a signal'}`);
}

await main();
