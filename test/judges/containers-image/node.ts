import { execFile, execFileSync } from 'node:child_process';
import {
  readdirSync,
  readFileSync,
  rmSync,
  mkdtempSync,
  mkdirSync,
  writeFileSync,
  existsSync,
} from 'node:fs';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { text as collect } from 'node:stream/consumers';
import { parseAllDocuments } from 'yaml';
import { openIso } from '../../../src/iso/read/open.ts';
import { findRegistryRoot, isoRegistryTree } from '../../../src/media/tree.ts';
import { createRegistryServer } from '../../../src/registry/server.ts';
import { readBootstrap, readEmbedded, textOf, unitOf } from './alter.ts';
import { findJudge } from '../find-judge.ts';
import type { GoodMedium } from './media.ts';

/*
 * Pulls images as a node of a medium does, with the library of podman and CRI-O: the live system with
 * the registries.conf of the medium, an installed node with what the machine config operator makes of mirror sets and
 * image policies. Only the host and port of the node's registry are others.
 */

/** Undefined where the judge is not installed. */
export const judge = findJudge('containers-image', 'pull');

/** Images that a host does not get, each with the reason. */
export type Refusals = ReadonlyMap<string, string>;

type Manifest = { readonly kind?: string; readonly spec?: Readonly<Record<string, unknown>> };
type MirrorEntry = { source?: string; mirrors?: string[]; mirrorSourcePolicy?: string };

/** The settings of a medium by which its hosts pull. */
type Settings = {
  /** registries.conf of the live system; absent on media that boot no host. */
  readonly conf?: string;
  /** Objects of the cluster. */
  readonly manifests: readonly Manifest[];
  /** `host:port` of the registry in all its names that a client accepts. */
  readonly registry: readonly string[];
  readonly hasPolicy: boolean;
};

export async function pullAll(medium: GoodMedium, path = medium.path): Promise<Refusals> {
  const iso = await openIso(path);
  const directory = mkdtempSync(join(tmpdir(), 'sealift-node-'));
  const root = await findRegistryRoot(iso);
  if (root === undefined) return new Map(medium.images.map((image) => [image, 'no registry']));
  const server = createRegistryServer(isoRegistryTree(iso, root)).listen(0, '127.0.0.1');
  try {
    await once(server, 'listening');
    const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    return await pullFrom(host, { medium, path, directory });
  } finally {
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
    await iso.close();
    rmSync(directory, { recursive: true, force: true });
  }
}

type Asked = { readonly medium: GoodMedium; readonly path: string; readonly directory: string };

async function pullFrom(host: string, { medium, path, directory }: Asked): Promise<Refusals> {
  const settings = path.includes('upgrade') ? readUpgrade(medium) : readSettings(path);
  const policy = {
    ...(settings.hasPolicy && (await readPolicy(host, medium, directory))),
    ...formatPolicies(settings.manifests),
  };
  const [live, node] = [join(directory, 'live'), join(directory, 'node')];
  writeSystem(live, { conf: settings.conf ?? '', host, settings });
  writeSystem(node, { conf: formatMirrors(settings.manifests), host, settings, policy });
  const catalogs = settings.manifests.flatMap(({ kind, spec }) =>
    kind === 'CatalogSource' ? [String(spec?.['image'])] : [],
  );
  const ocp = medium.images.filter((image) => image.startsWith('quay.io/ocp/'));
  const refusals = new Map<string, string>();
  const pull = async (system: string, images: readonly string[]): Promise<void> => {
    const moved = new Map(images.map((image) => [relocate(image, host, settings), image]));
    for (const { image, problem } of await pullAs(system, [...moved.keys()])) {
      if (problem !== undefined) refusals.set(moved.get(image) ?? image, problem);
    }
  };
  if (settings.conf !== undefined) await pull(live, ocp);
  await pull(node, [...medium.images, ...catalogs]);
  return refusals;
}

type Answer = { readonly image: string; readonly problem?: string };

/** Pulls by a host without a way to another network. */
async function pullAs(system: string, images: readonly string[]): Promise<readonly Answer[]> {
  const target = join(system, 'images');
  mkdirSync(target, { recursive: true });
  const files = ['registries.conf', 'policy.json', 'd'].map((name) => join(system, name));
  const proxy = 'http://127.0.0.1:9';
  const env = { ...process.env, HTTPS_PROXY: proxy, HTTP_PROXY: proxy, NO_PROXY: '127.0.0.1' };
  const child = execFile(judge ?? '', [...files, target], { env, maxBuffer: 1 << 26 });
  child.stdin?.end(images.map((image) => `${image}\n`).join(''));
  const [stdout] = await Promise.all([
    collect(child.stdout ?? Readable.from([])),
    once(child, 'close'),
  ]);
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Answer);
}

const relocate = (text: string, host: string, { registry }: Settings): string =>
  registry.reduce(
    (moved, name) =>
      moved.replaceAll(
        new RegExp(`(^|")${name.replaceAll('.', '\\.')}(?=[/"]|$)`, 'gm'),
        `$1${host}`,
      ),
    text,
  );

type System = {
  readonly conf: string;
  readonly host: string;
  readonly settings: Settings;
  readonly policy?: Readonly<Record<string, unknown>>;
};

/** containers-policy.json(5) and containers-registries.d(5), as the machine config operator writes them. */
function writeSystem(directory: string, { conf, host, settings, policy = {} }: System): void {
  mkdirSync(join(directory, 'd'), { recursive: true });
  writeFileSync(join(directory, 'registries.conf'), relocate(conf, host, settings));
  const transports = { docker: policy, dir: { '': [{ type: 'insecureAcceptAnything' }] } };
  writeFileSync(
    join(directory, 'policy.json'),
    JSON.stringify({ default: [{ type: 'insecureAcceptAnything' }], transports }),
  );
  // The operator names the scopes of the policies and their mirrors; all of those are in the node's registry.
  const attachments = { 'use-sigstore-attachments': true };
  writeFileSync(
    join(directory, 'd/sigstore.yaml'),
    JSON.stringify({
      docker: Object.fromEntries(
        [host, ...Object.keys(policy)].map((scope) => [scope, attachments]),
      ),
    }),
  );
}

/** registries.conf of an installed node. */
function formatMirrors(manifests: readonly Manifest[]): string {
  const kinds = [
    ['ImageDigestMirrorSet', 'imageDigestMirrors', 'digest-only'],
    ['ImageTagMirrorSet', 'imageTagMirrors', 'tag-only'],
  ] as const;
  const tables = new Map<string, string[]>();
  for (const [kind, member, pulls] of kinds) {
    const entries = manifests
      .filter((manifest) => manifest.kind === kind)
      .flatMap(({ spec }) => (spec?.[member] ?? []) as readonly MirrorEntry[]);
    for (const { source = '', mirrors = [], mirrorSourcePolicy } of entries) {
      const lines = tables.get(source) ?? [];
      tables.set(source, lines);
      if (mirrorSourcePolicy === 'NeverContactSource') lines.unshift('  blocked = true');
      for (const mirror of mirrors) {
        lines.push('  [[registry.mirror]]', `    location = "${mirror}"`);
        lines.push(`    pull-from-mirror = "${pulls}"`);
      }
    }
  }
  return [...tables]
    .flatMap(([source, lines]) => [
      ...['[[registry]]', '  prefix = ""', `  location = "${source}"`],
      ...lines,
      '',
    ])
    .join('\n');
}

/** Ignition applies the embedded config last: its file wins. */
function readSettings(path: string): Settings {
  const [system, user] = [readBootstrap(path), readEmbedded(path)];
  const files = new Map(
    [system, user].flatMap((config) =>
      config.storage.files.map((file) => [file.path, textOf(config, file.path)] as const),
    ),
  );
  const port = /REGISTRY_HTTP_ADDR=:(\d+)/.exec(
    unitOf(system, 'start-local-registry.service').contents ?? '',
  )?.[1];
  const domainIn = (script: string): string | undefined =>
    /^readonly domain='(.*)'$/m.exec(files.get(`/usr/local/bin/${script}`) ?? '')?.[1];
  const named = new Set(['localhost', domainIn('setup-local-registry.sh')]);
  const certified = ['localhost', domainIn('certify-local-registry.sh')];
  const names = certified.filter((name) => name !== undefined && named.has(name));
  return {
    conf: files.get('/etc/containers/registries.conf') ?? '',
    manifests: [...files].flatMap(([path, text]) =>
      path.startsWith('/etc/assisted/extra-manifests/') ? parseManifests(text) : [],
    ),
    registry: names.map((name) => `${name ?? ''}:${port ?? ''}`),
    hasPolicy: !(files.get('/usr/local/bin/set-env-files.sh') ?? '').includes(
      "disable_image_policy='yes'",
    ),
  };
}

/** An attached upgrade ISO is served at a port of its own, to nodes that have the resources that come with it. */
function readUpgrade({ path }: GoodMedium): Settings {
  const [name = ''] = readdirSync(join(path, '..')).filter((one) => /^upgrade-.*\.yaml$/.test(one));
  return {
    manifests: parseManifests(readFileSync(join(path, '..', name), 'utf8')),
    registry: ['registry.appliance.openshift.com:5001'],
    hasPolicy: true,
  };
}

const parseManifests = (text: string): readonly Manifest[] =>
  parseAllDocuments(text).map((document) => document.toJS() as Manifest);

type PolicyManifest = {
  readonly spec: {
    readonly scopes: readonly string[];
    readonly policy: { readonly rootOfTrust: { readonly publicKey: { readonly keyData: string } } };
  };
};

/** The image policies of the release on the medium, by scope; none if its image cannot be read there. */
async function readPolicy(
  host: string,
  { release }: GoodMedium,
  directory: string,
): Promise<Readonly<Record<string, unknown>>> {
  const [system, payload] = [join(directory, 'payload'), join(directory, 'files')];
  writeSystem(system, {
    conf: '',
    host,
    settings: { manifests: [], registry: [], hasPolicy: false },
  });
  mkdirSync(payload);
  await pullAs(system, [`${host}/openshift/release-images@${release.digest}`]);
  for (const layer of listLayers(join(system, 'images/0'))) {
    execFileSync('bsdtar', ['-xf', layer, '-C', payload]);
  }
  const manifests = join(payload, 'release-manifests');
  const names = existsSync(manifests) ? readdirSync(manifests) : [];
  return formatPolicies(
    names.flatMap((name) => parseManifests(readFileSync(join(manifests, name), 'utf8'))),
  );
}

/** containers-policy.json(5), the requirements of each scope. */
function formatPolicies(manifests: readonly Manifest[]): Readonly<Record<string, unknown>> {
  const policies = manifests.filter(({ kind }) => kind === 'ClusterImagePolicy');
  const signedIdentity = { type: 'matchRepoDigestOrExact' };
  return Object.fromEntries(
    (policies as unknown as readonly PolicyManifest[]).flatMap(({ spec: { scopes, policy } }) => {
      const { keyData } = policy.rootOfTrust.publicKey;
      return scopes.map((scope) => [scope, [{ type: 'sigstoreSigned', keyData, signedIdentity }]]);
    }),
  );
}

/** Those of an image in the form dir; none if it was not pulled. */
function listLayers(directory: string): readonly string[] {
  const path = join(directory, 'manifest.json');
  if (!existsSync(path)) return [];
  const { layers } = JSON.parse(readFileSync(path, 'utf8')) as {
    readonly layers: readonly { readonly digest: string }[];
  };
  return layers.map(({ digest }) => join(directory, digest.slice('sha256:'.length)));
}
