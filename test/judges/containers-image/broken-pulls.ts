import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import type { Digest } from '../../../src/base/digest.ts';
import { makeImagePolicy } from '../../support/cosign.ts';
import { type Change, type Config, encodeText, readFromMedium, replaceIn } from './alter.ts';
import type { Broken } from './broken.ts';
import { type GoodMedium, INDEX, INDEX_TAG, signImage } from './media.ts';
import {
  blobPath,
  findDigest,
  layerPath,
  ownLayer,
  readManifest,
  readTag,
  RELEASE,
  RELEASE_IMAGES,
  repositoryPath,
  revisionPath,
  shelve,
  signatureTag,
  tagPath,
} from './shelf.ts';

const BASE = { base: '4.21 interactive', part: 'pulls' } as const;
const MANIFESTS = '/etc/assisted/extra-manifests';
const RELEASE_MIRRORS = `${MANIFESTS}/idms-release-0.yaml`;
const REGISTRIES_CONF = '/etc/containers/registries.conf';
const REGISTRY = 'localhost:22625';

const etcdOf = ({ release }: GoodMedium): Digest => release.components['etcd'] ?? 'sha256:';
const releaseImage = ({ release }: GoodMedium): readonly string[] => [release.pullspec];
const etcd = (medium: GoodMedium): readonly string[] => [`quay.io/ocp/art-dev@${etcdOf(medium)}`];
const named =
  (...parts: readonly string[]) =>
  ({ images }: GoodMedium): readonly string[] =>
    images.filter((image) => parts.some((part) => image.includes(part)));
const components = named('ocp/art-dev');
const catalog = (): readonly string[] => [`${REGISTRY}/${INDEX}:${INDEX_TAG}`];

const without = (...paths: readonly string[]): Change => ({
  files: Object.fromEntries(paths.map((path) => [path, null])),
});

/** Puts another signature where that of the release image is. */
const signRelease = (
  { release }: GoodMedium,
  signed: Partial<{ key: KeyObject; digest: Digest; identity: string }> & { key: KeyObject },
): Change => {
  const { identity = 'quay.io/ocp/release:4.21.3-x86_64', digest = release.digest, key } = signed;
  const image = signImage(identity, { digest, key });
  return { files: shelve(RELEASE, signatureTag(release.digest), image) };
};

const editMirrors = (path: string, change: readonly [string, string]): Change => ({
  bootstrap: (config: Config) => {
    replaceIn(config, path, change);
  },
});

const SIGNATURES: readonly Broken[] = [
  {
    ...BASE,
    name: 'the signature of the release image is gone',
    refused: releaseImage,
    change: ({ release }) => without(tagPath(RELEASE, signatureTag(release.digest))),
  },
  {
    ...BASE,
    name: 'the signature of a component is gone',
    refused: etcd,
    change: (medium) => without(tagPath(RELEASE, signatureTag(etcdOf(medium)))),
  },
  {
    ...BASE,
    name: 'the signature tag of the release image leads to the signature of a component',
    refused: releaseImage,
    change: (medium) => ({
      files: {
        [`${tagPath(RELEASE, signatureTag(medium.release.digest))}/current/link`]: readTag(
          medium,
          RELEASE,
          signatureTag(etcdOf(medium)),
        ),
      },
    }),
  },
  {
    ...BASE,
    name: 'the release image is signed by another key',
    refused: releaseImage,
    change: (medium) => {
      const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      return signRelease(medium, { key: privateKey });
    },
  },
  {
    ...BASE,
    name: 'the release image is signed under the name of another repository',
    refused: releaseImage,
    change: (medium, { key }) => signRelease(medium, { key, identity: 'quay.io/ocp/other:1' }),
  },
  {
    ...BASE,
    name: 'the release image is signed under the name of its repository alone',
    refused: releaseImage,
    change: (medium, { key }) => signRelease(medium, { key, identity: 'quay.io/ocp/release' }),
  },
  {
    ...BASE,
    name: 'the signature of the release image is about another image',
    refused: releaseImage,
    change: (medium, { key }) => signRelease(medium, { key, digest: etcdOf(medium) }),
  },
  {
    ...BASE,
    name: 'the signature of the release image has lost what was signed',
    refused: releaseImage,
    change: (medium) => {
      const manifest = readTag(medium, RELEASE, signatureTag(medium.release.digest));
      return without(blobPath(ownLayer(medium, manifest)));
    },
  },
  {
    ...BASE,
    name: 'the repository that has the signature has no release image',
    refused: releaseImage,
    change: ({ release }) => without(revisionPath(RELEASE, release.digest)),
  },
];

const POLICIES: readonly Broken[] = [
  {
    ...BASE,
    name: 'a policy among the manifests asks for signatures that additional images do not have',
    refused: named('/team/'),
    change: (_, { key }) => ({
      bootstrap: ({ storage }) => {
        const contents = encodeText(makeImagePolicy(key, ['registry.redhat.io/team']));
        storage.files.push({ path: `${MANIFESTS}/own-policy.yaml`, mode: 0o644, contents });
      },
    }),
  },
];

const MIRRORS: readonly Broken[] = [
  {
    ...BASE,
    name: 'the mirror set asks the repository without the signature first',
    refused: releaseImage,
    change: () => ({
      bootstrap: (config) => {
        const [first, second] = [RELEASE, RELEASE_IMAGES].map((path) => `- ${REGISTRY}/${path}\n`);
        replaceIn(config, RELEASE_MIRRORS, [`${first ?? ''}        ${second ?? ''}`, 'SWAPPED']);
        replaceIn(config, RELEASE_MIRRORS, ['SWAPPED', `${second ?? ''}        ${first ?? ''}`]);
      },
    }),
  },
  {
    ...BASE,
    name: 'the mirror set is for another source than the components',
    refused: components,
    change: () => editMirrors(RELEASE_MIRRORS, ['quay.io/ocp/art-dev', 'quay.io/ocp/art-old']),
  },
  {
    ...BASE,
    name: 'the cluster gets no mirror set of the operators',
    refused: named('/alpha/'),
    change: () => ({
      bootstrap: ({ storage }) => {
        storage.files = storage.files.filter(({ path }) => !path.endsWith('/idms-operator-0.yaml'));
      },
    }),
  },
  {
    ...BASE,
    name: 'the mirror set leads to another port',
    refused: named('quay.io/ocp/'),
    change: () => editMirrors(RELEASE_MIRRORS, [REGISTRY, 'localhost:22626']),
  },
  {
    ...BASE,
    name: 'the mirror set leads to a repository that is not there',
    refused: named('/team/'),
    change: () => ({
      bootstrap: (config) => {
        for (const set of ['idms-generic-0', 'itms-generic-0']) {
          replaceIn(config, `${MANIFESTS}/${set}.yaml`, [`${REGISTRY}/team`, `${REGISTRY}/tame`]);
        }
      },
    }),
  },
  {
    ...BASE,
    name: 'no mirror set is for images by tag',
    refused: named('team/tool'),
    change: () => ({
      bootstrap: ({ storage }) => {
        storage.files = storage.files.filter(({ path }) => !path.endsWith('/itms-generic-0.yaml'));
      },
    }),
  },
  {
    ...BASE,
    name: 'registries.conf does not know the components',
    refused: components,
    change: () => editMirrors(REGISTRIES_CONF, ['quay.io/ocp/art-dev', 'quay.io/ocp/art-old']),
  },
  {
    ...BASE,
    name: 'registries.conf leads to another port',
    refused: named('quay.io/ocp/'),
    change: () => editMirrors(REGISTRIES_CONF, [REGISTRY, 'localhost:22626']),
  },
  {
    ...BASE,
    name: 'registries.conf is not TOML',
    refused: named('quay.io/ocp/'),
    change: () => editMirrors(REGISTRIES_CONF, ['[[registry]]', '[[registry']),
  },
];

const CONTENTS: readonly Broken[] = [
  {
    ...BASE,
    name: 'the manifest of a component is gone',
    refused: etcd,
    change: (medium) => without(blobPath(etcdOf(medium))),
  },
  {
    ...BASE,
    name: 'a component is not in its repository',
    refused: etcd,
    change: (medium) => without(revisionPath(RELEASE, etcdOf(medium))),
  },
  {
    ...BASE,
    name: 'the manifest of a component is that of another one',
    refused: etcd,
    change: (medium) => {
      const other = medium.release.components['installer'] ?? '';
      const bytes = readFromMedium(medium.path, blobPath(other));
      return { files: { [blobPath(etcdOf(medium))]: bytes } };
    },
  },
  {
    ...BASE,
    name: 'a layer of a component is gone',
    refused: etcd,
    change: (medium) => without(blobPath(ownLayer(medium, etcdOf(medium)))),
  },
  {
    ...BASE,
    name: 'a layer of a component is cut',
    refused: etcd,
    change: (medium) => {
      const path = blobPath(ownLayer(medium, etcdOf(medium)));
      return { files: { [path]: readFromMedium(medium.path, path).subarray(0, -9) } };
    },
  },
  {
    ...BASE,
    name: 'a layer of a component is not in its repository',
    refused: etcd,
    change: (medium) => without(layerPath(RELEASE, ownLayer(medium, etcdOf(medium)))),
  },
  {
    ...BASE,
    name: 'the config of a component is gone',
    refused: etcd,
    change: (medium) => without(blobPath(readManifest(medium, etcdOf(medium)).config.digest)),
  },
  {
    ...BASE,
    name: 'the release image is gone',
    refused: releaseImage,
    change: ({ release }) =>
      without(revisionPath(RELEASE, release.digest), revisionPath(RELEASE_IMAGES, release.digest)),
  },
  {
    ...BASE,
    name: 'the payload names a component that was never carried',
    refused: etcd,
    change: (medium) => {
      const digest = etcdOf(medium);
      const own = [ownLayer(medium, digest), readManifest(medium, digest).config.digest];
      const hex = medium.release.digest.slice('sha256:'.length);
      return without(
        ...[digest, ...own].map((one) => blobPath(one)),
        ...own.map((one) => layerPath(RELEASE, one)),
        ...[revisionPath(RELEASE, digest), tagPath(RELEASE, `${hex}-etcd`)],
        tagPath(RELEASE, signatureTag(digest)),
      );
    },
  },
  {
    ...BASE,
    name: 'an index has no manifest for the machines',
    refused: named('team/any'),
    change: (medium) => {
      const index = findDigest(medium, 'team/any');
      const { manifests } = JSON.parse(
        readFromMedium(medium.path, blobPath(index)).toString('utf8'),
      ) as { manifests: readonly { digest: string; platform: { architecture: string } }[] };
      const own = manifests.find(({ platform }) => platform.architecture === 'amd64');
      return without(revisionPath('team/any', own?.digest ?? ''));
    },
  },
  {
    ...BASE,
    name: 'an additional image is gone',
    refused: named('team/tool'),
    change: () => without(repositoryPath('team/tool')),
  },
  {
    ...BASE,
    name: 'a tag leads to a manifest that is not there',
    refused: named('team/tool'),
    change: () => ({
      files: { [`${tagPath('team/tool', '1')}/current/link`]: `sha256:${'1'.repeat(64)}` },
    }),
  },
  {
    base: BASE.base,
    name: 'an operand of an operator is gone',
    part: 'pulls',
    refused: named('alpha/operand'),
    change: () => without(repositoryPath('alpha/operand')),
  },
  {
    base: BASE.base,
    name: 'the bundle of an operator is gone',
    part: 'pulls',
    refused: named('alpha/alpha-bundle'),
    change: () => without(repositoryPath('alpha/alpha-bundle')),
  },
  {
    base: BASE.base,
    name: 'the catalog is gone',
    part: 'pulls',
    refused: catalog,
    change: () => without(repositoryPath(INDEX)),
  },
];

export const BROKEN_PULLS: readonly Broken[] = [
  ...SIGNATURES,
  ...POLICIES,
  ...MIRRORS,
  ...CONTENTS,
];
