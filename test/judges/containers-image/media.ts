import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeDefinitions } from '../../../demo/definitions.ts';
import { SIGNATURE_LINES } from '../../../demo/release-signer.ts';
import { hexOf, type Digest } from '../../../src/base/digest.ts';
import { isAtLeast } from '../../../src/openshift/release/version.ts';
import { addCatalog, buildStandIn, makeOperator, topDigest } from '../../support/catalog.ts';
import {
  attach,
  makeImagePolicy,
  packSignatures,
  signBytes,
  stateImage,
} from '../../support/cosign.ts';
import type { ImageRegistry } from '../../support/image-registry.ts';
import { buildIndex } from '../../support/images.ts';
import { makeInstaller } from '../../support/installer-script.ts';
import { makeCoreosIso } from '../../support/iso.ts';
import { createLiveWorld, type LiveWorld } from '../../support/live-iso.ts';
import { addRelease, type TestRelease } from '../../support/release.ts';
import { buildDistributionImage } from '../../support/registry-images.ts';
import {
  formatMirrorSet,
  MIRROR_HOST,
  writeWorkspace,
  type Copy,
} from '../../support/workspace.ts';

/** A medium on which nothing is wrong, and the images that its hosts pull, as they name them. */
export type GoodMedium = {
  readonly name: string;
  readonly path: string;
  readonly release: TestRelease;
  readonly images: readonly string[];
};

export type MediaWorld = {
  readonly directory: string;
  readonly run: LiveWorld['run'];
  /** The key that signs images of the releases. */
  readonly key: KeyObject;
  readonly media: readonly GoodMedium[];
  readonly close: () => Promise<void>;
};

type Recipe = {
  readonly name: string;
  readonly version: string;
  readonly command?: 'live-iso' | 'upgrade-iso';
  readonly lines?: readonly string[];
  /** Lines below `build`. */
  readonly build?: readonly string[];
  /** True if all images come out of an oc-mirror workspace. */
  readonly isMirrored?: boolean;
  /** False: no image of the release is signed. */
  readonly isSigned?: boolean;
};

const INTERACTIVE = ['enableInteractiveFlow: true'];
const REGISTRY = ['imageRegistry: {uri: "quay.io/libpod/registry:2.8"}'];

/** One medium for each way in which the nodes of an era come to their images. */
const RECIPES: readonly Recipe[] = [
  { name: '4.21 interactive', version: '4.21.3', lines: INTERACTIVE },
  { name: '4.21', version: '4.21.3' },
  { name: 'upgrade 4.22', version: '4.22.1', command: 'upgrade-iso' },
  { name: '4.18', version: '4.18.5', lines: REGISTRY },
  { name: '4.14', version: '4.14.30', lines: REGISTRY },
  { name: '4.16', version: '4.16.9', lines: REGISTRY },
  { name: '4.20 interactive', version: '4.20.9', lines: [...INTERACTIVE, ...REGISTRY] },
  { name: '4.22 interactive', version: '4.22.1', lines: INTERACTIVE },
  { name: '5.0 interactive', version: '5.0.1', lines: INTERACTIVE },
  { name: '5.0', version: '5.0.1' },
  { name: '4.21 mirrorPath', version: '4.21.3', isMirrored: true },
  {
    name: '4.21 without image policy',
    version: '4.21.7',
    isSigned: false,
    build: ['disableImagePolicy: true'],
  },
];

export const GOOD_MEDIA: readonly string[] = RECIPES.map(({ name }) => name);

export const INDEX = 'redhat/redhat-operator-index';
export const INDEX_TAG = 'v4.21';
const REDHAT = 'registry.redhat.io';

/** Builds media of every era from one registry, which is gone when they are there. */
export async function createMediaWorld(wanted: readonly string[]): Promise<MediaWorld> {
  const world = await createLiveWorld();
  const key = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
  const source = await fillRegistry(world.registry);
  world.env['PATH'] = process.env['PATH'];
  world.env['CONTAINERS_REGISTRIES_CONF'] = join(world.directory, 'registries.conf');
  await writeFile(join(world.directory, 'registries.conf'), redirect(world.registry.host));
  const iso = await readFile(await makeCoreosIso(world.directory, { files: KERNEL }));
  const media: GoodMedium[] = [];
  for (const recipe of RECIPES.filter(({ name }) => wanted.includes(name))) {
    const release = await publish(world.registry, { recipe, iso, key });
    media.push(await build(world, recipe, { release, source }));
  }
  await world.registry.close();
  return {
    directory: world.directory,
    run: world.run,
    key,
    media,
    close: () => rm(world.directory, { recursive: true, force: true }),
  };
}

const redirect = (host: string): string =>
  ['quay.io', REDHAT]
    .map((name) => `[[registry]]\nprefix = "${name}"\nlocation = "${host}"\ninsecure = true\n`)
    .join('');

/** Linux/x86 boot protocol: `HdrS` at 0x202. */
const KERNEL = {
  'images/pxeboot/vmlinuz': Buffer.concat([Buffer.alloc(0x202), Buffer.from('HdrS')]),
};

type Source = {
  /** Images of the operator, by digest. */
  readonly operator: readonly string[];
  readonly additional: readonly string[];
};

async function fillRegistry(registry: ImageRegistry): Promise<Source> {
  const operator = await makeOperator(
    { registry, host: REDHAT },
    { name: 'alpha', channels: { stable: ['1.0.0'] } },
  );
  await addCatalog(registry, INDEX, {
    tag: INDEX_TAG,
    files: { 'alpha/catalog.json': operator },
  });
  const tool = await buildStandIn('tool');
  registry.add('team/tool', tool, '1');
  const [amd, arm] = [await buildStandIn('any'), await buildStandIn('any', 'arm64')];
  const index = buildIndex([
    [{ os: 'linux', architecture: 'amd64' }, amd],
    [{ os: 'linux', architecture: 'arm64' }, arm],
  ]);
  registry.add('team/any', index);
  registry.add('libpod/registry', await buildDistributionImage(), '2.8');
  return {
    operator: [
      ...new Set(
        [...JSON.stringify(operator).matchAll(/"([^"]+@sha256:[0-9a-f]{64})"/g)].map(
          ([, image = '']) => image,
        ),
      ),
    ],
    additional: [`${REDHAT}/team/tool:1`, `${REDHAT}/team/any@${topDigest(index)}`],
  };
}

/** A release whose policy asks for the key, and a signature by it for each of its images. */
async function publish(
  registry: ImageRegistry,
  made: { readonly recipe: Recipe; readonly iso: Uint8Array; readonly key: KeyObject },
): Promise<TestRelease> {
  const { recipe, iso, key } = made;
  const { version, isSigned = true } = recipe;
  const policy = makeImagePolicy(key, ['quay.io/ocp/release', 'quay.io/ocp/art-dev']);
  const definitions = {
    ...makeDefinitions(version),
    ...(isAtLeast(version, '4.21.0') && { 'release-manifests/0000_90_policy.yaml': policy }),
  };
  const release = await addRelease(
    { ...registry, host: 'quay.io' },
    { version, iso, installer: makeInstaller(version), definitions },
  );
  const sign = (repository: string, digest: Digest): void => {
    const identity = `quay.io/${repository}:${version}-x86_64`;
    attach(registry, { repository, digest }, signImage(identity, { digest, key }));
  };
  if (isSigned) {
    sign('ocp/release', release.digest);
    for (const digest of Object.values(release.components)) sign('ocp/art-dev', digest);
  }
  return release;
}

/** The image that cosign attaches to a signed one. */
export const signImage = (
  identity: string,
  { digest, key }: { readonly digest: Digest; readonly key: KeyObject },
): ReturnType<typeof packSignatures> => {
  const payload = Buffer.from(JSON.stringify(stateImage(digest, identity)));
  return packSignatures([{ payload, signature: signBytes(payload, key).toString('base64') }]);
};

async function build(
  world: LiveWorld,
  recipe: Recipe,
  { release, source }: { readonly release: TestRelease; readonly source: Source },
): Promise<GoodMedium> {
  const { name, command = 'live-iso', isMirrored = false } = recipe;
  const file = `${name.replaceAll(' ', '-')}.iso`;
  if (isMirrored) await mirror(world, { release, source });
  await writeFile(
    join(world.directory, 'appliance-config.yaml'),
    [...listSettings(recipe, { release, source }), ''].join('\n'),
  );
  const { exitCode, stderr } = await world.run('build', command, '--output', file);
  if (exitCode !== 0) throw new Error(`${name}: ${stderr}`);
  return {
    name,
    path: join(world.directory, file),
    release,
    images: [
      release.pullspec,
      ...Object.values(release.components).map((digest) => `quay.io/ocp/art-dev@${digest}`),
      ...source.operator,
      ...source.additional,
    ],
  };
}

function listSettings(
  { version, isMirrored = false, lines = [], build = [] }: Recipe,
  { release, source }: { readonly release: TestRelease; readonly source: Source },
): readonly string[] {
  const signatures = isMirrored
    ? SIGNATURE_LINES.filter((line) => line.includes('signatureKeys'))
    : SIGNATURE_LINES;
  return [
    ...['apiVersion: v1beta1', 'kind: ApplianceConfig', 'ocpRelease:', `  version: "${version}"`],
    ...(isMirrored
      ? ['mirrorPath: mirror']
      : [
          `  url: ${release.pullspec}`,
          `pullSecret: '{"auths":{"quay.io":{"auth":"dXNlcjpzZWNyZXQtd29yZA=="}}}'`,
        ]),
    ...lines,
    'additionalImages:',
    ...source.additional.map((image) => `  - name: ${image}`),
    'operators:',
    `  - catalog: ${REDHAT}/${INDEX}:${INDEX_TAG}`,
    ...['build:', ...signatures, ...build.map((line) => `  ${line}`)],
  ];
}

/** The workspace that oc-mirror v2 makes of the same selection, with the signatures beside their images. */
async function mirror(
  { directory, registry }: LiveWorld,
  { release, source }: { readonly release: TestRelease; readonly source: Source },
): Promise<void> {
  const at = (image: string): string => `${registry.host}/${image.slice(image.indexOf('/') + 1)}`;
  const tagOf = (digest: Digest): string => `sha256-${hexOf(digest)}.sig`;
  const copies: Copy[] = [
    [at(release.pullspec), 'openshift/release-images:4.21.3-x86_64'],
    [at(release.pullspec), 'openshift/release:4.21.3-x86_64'],
    [
      `${registry.host}/ocp/release:${tagOf(release.digest)}`,
      `openshift/release:${tagOf(release.digest)}`,
    ],
    ...Object.entries(release.components).flatMap(([name, digest]): Copy[] => [
      [`${registry.host}/ocp/art-dev@${digest}`, `openshift/release:4.21.3-x86_64-${name}`],
      [`${registry.host}/ocp/art-dev:${tagOf(digest)}`, `openshift/release:${tagOf(digest)}`],
    ]),
    [`${registry.host}/${INDEX}:${INDEX_TAG}`, `${INDEX}:${INDEX_TAG}`],
    ...[...source.operator, ...source.additional].map((image): Copy => {
      const [name = '', digest] = image.slice(image.indexOf('/') + 1).split('@');
      return [at(image), digest === undefined ? name : `${name}:${digest.replace(':', '-')}`];
    }),
  ];
  const hex = hexOf(release.digest);
  const message = registry.signer.find(`sha256=${hex}/signature-1`)?.toString('base64') ?? '';
  await writeWorkspace(join(directory, 'mirror'), copies, {
    'idms-oc-mirror.yaml': [
      formatMirrorSet('idms-release-0', [
        ['quay.io/ocp/release', `${MIRROR_HOST}/openshift/release`],
        ['quay.io/ocp/art-dev', `${MIRROR_HOST}/openshift/release`],
      ]),
      formatMirrorSet('idms-operator-0', [[`${REDHAT}/alpha`, `${MIRROR_HOST}/alpha`]]),
      formatMirrorSet('idms-generic-0', [[`${REDHAT}/team`, `${MIRROR_HOST}/team`]]),
    ].join(''),
    'itms-oc-mirror.yaml': formatMirrorSet('itms-generic-0', [
      [`${REDHAT}/team`, `${MIRROR_HOST}/team`],
    ])
      .replace('ImageDigestMirrorSet', 'ImageTagMirrorSet')
      .replace('imageDigestMirrors', 'imageTagMirrors'),
    'cs-redhat-operator-index-v4-21.yaml': [
      ...['apiVersion: operators.coreos.com/v1alpha1', 'kind: CatalogSource', 'metadata:'],
      ...['  name: cs-redhat-operator-index-v4-21', '  namespace: openshift-marketplace', 'spec:'],
      ...[`  image: ${MIRROR_HOST}/${INDEX}:${INDEX_TAG}`, '  sourceType: grpc', ''],
    ].join('\n'),
    'signature-configmap.yaml': [
      ...['apiVersion: v1', 'kind: ConfigMap', 'metadata:', '  name: mirrored-release-signatures'],
      '  namespace: openshift-config-managed',
      '  labels: {release.openshift.io/verification-signatures: ""}',
      ...[`binaryData: {sha256-${hex}-1: ${message}}`, ''],
    ].join('\n'),
  });
}
