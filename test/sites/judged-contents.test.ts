import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { createRedaction } from '../../src/base/text/redact.ts';
import { digestOf } from '../../src/base/digest.ts';
import { decodeFileContent, type IgnitionConfig } from '../../src/ignition/index.ts';
import { renderInstallationIgnition } from '../../src/openshift/installation/ignition.ts';
import { checkSite } from '../../src/sites/check.ts';
import { planConfigTree } from '../../src/sites/compose/tree.ts';
import { checkInstallationConfig } from '../../src/sites/installation.ts';
import type { SiteIdentity } from '../../src/sites/identity/identity.ts';

const redaction = createRedaction();

const RECORDED = '../shared/data/judged/installer';
/** The day of the recording, in seconds since 1970. */
const RECORDED_AT = Date.UTC(2026, 10, 26) / 1000;

type Inputs = Readonly<Record<string, string>>;
type Recorded = {
  readonly 'name': string;
  readonly 'inputs': Inputs;
  /** Of installation ISOs. */
  readonly 'ignition'?: {
    readonly files: readonly {
      readonly path: string;
      readonly mode: string | null;
      readonly user: string | null;
      readonly overwrite: boolean | null;
      readonly sha256: string;
    }[];
    readonly units: readonly { readonly name: string; readonly enabled: boolean | null }[];
    readonly users: unknown;
  };
  /** Of configuration ISOs: mode, size and SHA-256 by path; directories end in a slash. */
  readonly 'tree'?: Readonly<Record<string, readonly [string, number?, string?]>>;
  readonly 'manifest.json'?: Readonly<Record<string, unknown>>;
};

const read = (name: string): readonly Recorded[] =>
  JSON.parse(readFileSync(`${RECORDED}/${name}.json`, 'utf8')) as readonly Recorded[];

/** The scripts are ours, as upstream's are its own text. */
const isScript = (path: string): boolean => path.endsWith('install-rhcos-and-restore-seed.sh');

/** Files, units and users of an Ignition config, as far as the recording has them. */
const describeOurs = ({ storage, systemd, passwd }: IgnitionConfig) => ({
  files: (storage?.files ?? []).map((file) => [
    file.path,
    file.mode?.toString(8) ?? null,
    file.user?.name ?? null,
    file.overwrite ?? null,
    isScript(file.path) ? '' : digestOf(decodeFileContent(file) ?? ''),
  ]),
  units: (systemd?.units ?? []).map(({ name, enabled }) => [name, enabled ?? null]),
  users: Object.fromEntries((passwd?.users ?? []).map((user) => [user.name, user])),
});

const describeTheirs = ({ files, units, users }: NonNullable<Recorded['ignition']>) => ({
  files: files.map(({ path, mode, user, overwrite, sha256 }) => [
    path,
    mode,
    user,
    overwrite,
    isScript(path) ? '' : `sha256:${sha256}`,
  ]),
  units: units.map(({ name, enabled }) => [name, enabled]),
  users,
});

type Described = ReturnType<typeof describeOurs>;

const inOrder = ({ files, units, users }: Described) => ({
  files: files.toSorted(byName),
  units: units.toSorted(byName),
  users,
});
const byName = ([a]: readonly unknown[], [b]: readonly unknown[]): number =>
  String(a) < String(b) ? -1 : 1;

function renderInstallation(inputs: Inputs): IgnitionConfig {
  const text = inputs['image-based-installation-config.yaml'] ?? '';
  const { config } = checkInstallationConfig(text, 'config.yaml');
  const override = config.ignitionConfigOverride?.reveal();
  const script = inputs['post.sh'];
  return renderInstallationIgnition({
    settings: config,
    pullSecret: config.pullSecret.reveal(),
    ...(override !== undefined && { ignitionConfigOverride: override }),
    ...(script !== undefined && { postScript: Buffer.from(script) }),
  });
}

const pair = { privateKey: 'key\n', certificate: 'certificate\n' };
const IDENTITY: SiteIdentity = {
  clusterId: '3c0d4d0a-6d0c-4a3f-9a55-1c6a3f8b0f11',
  infraId: 'site1-abcde',
  signers: {
    loadBalancer: pair,
    localhost: pair,
    serviceNetwork: pair,
    ingress: { ...pair, commonName: 'ingress-operator@1' },
    adminKubeconfig: pair,
  },
  adminClient: pair,
  password: { text: 'aaaaa-bbbbb-ccccc-ddddd', bcrypt: '$2a$10$hash' },
  madeAt: 1,
};

/** Drawn for each ISO; their form has its own tests. */
const DRAWN = ['cluster_id', 'infra_id', 'kubeadmin_password_hash', 'KubeconfigCryptoRetention'];
const MANIFEST = 'cluster-configuration/manifest.json';

const withoutDrawn = (manifest: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(Object.entries(manifest).filter(([key]) => !DRAWN.includes(key)));

/** The tree of a site's ISO without the bytes of the manifest, and the manifest. */
function planTree(inputs: Inputs) {
  const files = Object.entries(inputs).map(([path, text]) => ({
    path,
    shownAs: path,
    bytes: Buffer.from(text),
  }));
  const { site } = checkSite({ name: 'site', files }, { epoch: RECORDED_AT, redaction });
  if (!site) return undefined;
  const tree = planConfigTree(site, IDENTITY);
  const manifest = tree.files.find(({ path }) => path === `/${MANIFEST}`)?.bytes ?? [];
  return {
    paths: [
      ...tree.directories.map((path) => [`${path.slice(1)}/`]),
      ...tree.files.map(({ path, bytes }) =>
        path === `/${MANIFEST}` ? [MANIFEST] : [path.slice(1), digestOf(bytes)],
      ),
    ].toSorted(byName),
    manifest: withoutDrawn(
      JSON.parse(Buffer.from(manifest).toString('utf8')) as Readonly<Record<string, unknown>>,
    ),
  };
}

const treeOf = (recorded: Recorded) => ({
  paths: Object.entries(recorded.tree ?? {})
    .map(([path, [, , sha256]]) => (sha256 === undefined ? [path] : [path, `sha256:${sha256}`]))
    .toSorted(byName),
  manifest: withoutDrawn(recorded['manifest.json'] ?? {}),
});

describe.skipIf(!existsSync(RECORDED))('what openshift-install 4.22 was recorded to make', () => {
  /** The installer writes a source with two policies twice, and containers/image refuses that. */
  const TWICE = 'g11';
  /** YAML 1.1 breaks the line at U+2028, and so drops the blanks behind it at the end of a key. */
  const SEPARATOR = 'c68html';

  it('for installation ISOs is what we make: files, units and users', () => {
    const made = read('installation-isos').filter(({ ignition }) => ignition !== undefined);
    expect(made).toHaveLength(18);
    for (const { name, inputs, ignition } of made) {
      if (name === TWICE || ignition === undefined) continue;
      const ours = inOrder(describeOurs(renderInstallation(inputs)));
      expect(ours, name).toEqual(inOrder(describeTheirs(ignition) as Described));
    }
  });

  it('for configuration ISOs is what we make: paths, contents and the members of the manifest', () => {
    let count = 0;
    for (const recorded of read('image-based-configurations')) {
      const ours = recorded.tree && planTree(recorded.inputs);
      if (ours === undefined || recorded.name === SEPARATOR) continue;
      count++;
      expect(ours, recorded.name).toEqual(treeOf(recorded));
    }
    expect(count).toBe(50);
  });
});
