import { type Change, type Config, encodeText, fileOf, replaceIn, textOf } from './alter.ts';
import type { Broken } from './broken.ts';
import { INDEX, INDEX_TAG } from './media.ts';
import {
  findDigest,
  layerPath,
  readManifest,
  repositoryPath,
  revisionPath,
  tagPath,
} from './shelf.ts';

const BASE = { base: '4.21', part: 'installer' } as const;
const MANIFESTS = '/etc/assisted/extra-manifests';
const INSTALL = '/etc/assisted/install.ign';
const OTHER = `quay.io/ocp/release@sha256:${'2'.repeat(64)}`;

const edit = (bootstrap: (config: Config) => void) => (): Change => ({ bootstrap });

/** Edits the config of installed hosts. */
const editInstall = (change: (config: Config) => void): (() => Change) =>
  edit((config) => {
    const install = JSON.parse(textOf(config, INSTALL)) as Config;
    change(install);
    fileOf(config, INSTALL).contents = encodeText(JSON.stringify(install));
  });

const dropFile = (name: string): (() => Change) =>
  edit(({ storage }) => {
    storage.files = storage.files.filter(({ path }) => path !== name);
  });

const setText = (path: string, text: string): (() => Change) =>
  edit((config) => {
    fileOf(config, path).contents = encodeText(text);
  });

/** The installer installs another release or nothing, or the installed hosts do not come up. */
export const BROKEN_INSTALLATIONS: readonly Broken[] = [
  {
    ...BASE,
    name: 'the assisted service is told of another release',
    change: ({ release }) => ({
      bootstrap: (config) => {
        replaceIn(config, '/usr/local/bin/set-env-files.sh', [release.pullspec, OTHER]);
      },
    }),
  },
  {
    ...BASE,
    part: 'pulls',
    name: 'the ClusterImageSet names another release',
    change: ({ release }) => ({
      bootstrap: (config) => {
        replaceIn(config, '/etc/assisted/cluster-image-set.yaml', [release.pullspec, OTHER]);
      },
    }),
  },
  {
    ...BASE,
    name: 'the ClusterImageSet of the installer names another release',
    change: ({ release }) => ({
      embedded: (config) => {
        const path = '/etc/assisted/manifests/cluster-image-set.yaml';
        replaceIn(config, path, [release.pullspec, OTHER]);
      },
    }),
  },
  {
    ...BASE,
    name: 'the ClusterImageSet is not YAML',
    change: setText('/etc/assisted/cluster-image-set.yaml', 'spec: {releaseImage: ['),
  },
  {
    ...BASE,
    name: 'no environment is written for the service',
    part: 'ignition',
    change: dropFile('/usr/local/bin/set-env-files.sh'),
  },
  {
    ...BASE,
    name: 'the config of installed hosts is gone',
    part: 'hosts',
    change: dropFile(INSTALL),
  },
  {
    ...BASE,
    name: 'the config of installed hosts is not JSON',
    part: 'hosts',
    change: setText(INSTALL, '{"ignition":'),
  },
  {
    ...BASE,
    name: 'the config of installed hosts is of a version that nobody knows',
    part: 'hosts',
    change: editInstall(({ ignition }) => {
      ignition.version = '9.9.0';
    }),
  },
  {
    ...BASE,
    name: 'installed hosts do not start the registry',
    part: 'hosts',
    change: editInstall(({ systemd }) => {
      const units = systemd?.units ?? [];
      units.splice(
        units.findIndex(({ name }) => name === 'start-local-registry.service'),
        1,
      );
    }),
  },
  {
    ...BASE,
    name: 'installed hosts do not get a script of the registry',
    part: 'hosts',
    change: editInstall(({ storage }) => {
      storage.files = storage.files.filter(({ path }) => !path.endsWith('/mount-agent-data.sh'));
    }),
  },
  {
    ...BASE,
    name: 'a manifest of the cluster is not YAML',
    change: setText(`${MANIFESTS}/operatorhub-cluster.yaml`, 'kind: [OperatorHub'),
  },
  {
    ...BASE,
    part: 'pulls',
    name: 'an image policy of the cluster has no key',
    change: edit(({ storage }) => {
      const text =
        'apiVersion: config.openshift.io/v1\nkind: ClusterImagePolicy\nmetadata: {name: own}\n' +
        'spec: {scopes: [quay.io/own], policy: {rootOfTrust: {policyType: PublicKey}}}\n';
      storage.files.push({
        path: `${MANIFESTS}/own.yaml`,
        mode: 0o644,
        contents: encodeText(text),
      });
    }),
  },
  {
    name: 'the CatalogSource names a tag that is not there',
    base: '4.21',
    part: 'pulls',
    refused: () => [`registry.appliance.openshift.com:22625/${INDEX}:v4.20`],
    change: edit((config) => {
      const source = config.storage.files.find(({ path }) => path.startsWith(`${MANIFESTS}/cs-`));
      replaceIn(config, source?.path ?? '', [`${INDEX}:${INDEX_TAG}`, `${INDEX}:v4.20`]);
    }),
  },
  {
    name: 'the tag of the catalog leads to another image',
    base: '4.21',
    part: 'pulls',
    refused: () => [],
    change: (medium) => {
      const digest = findDigest(medium, 'alpha/operand');
      const { config, layers } = readManifest(medium, digest);
      const blobs = [config, ...layers].map((blob) => blob.digest);
      return {
        files: {
          [`${tagPath(INDEX, INDEX_TAG)}/current/link`]: digest,
          [`${revisionPath(INDEX, digest)}/link`]: digest,
          ...Object.fromEntries(blobs.map((blob) => [`${layerPath(INDEX, blob)}/link`, blob])),
        },
      };
    },
  },
  ...UPGRADES(),
];

/** On an upgrade ISO, the registry has another place. */
function UPGRADES(): readonly Broken[] {
  const base = 'upgrade 4.22';
  const root = '/oc-mirror/install/docker/registry/v2';
  return [
    {
      name: 'an upgrade ISO has no images of its release',
      base,
      part: 'pulls',
      refused: ({ images }) => images.filter((image) => image.startsWith('quay.io/ocp/')),
      change: () => ({
        files: {
          [repositoryPath('openshift/release-images', root)]: null,
          [repositoryPath('openshift/release', root)]: null,
        },
      }),
    },
    {
      name: 'an upgrade ISO names another release',
      base,
      part: 'upgrade',
      change: () => ({
        files: { '/release.env': `RELEASE_IMAGE=${OTHER}\nRELEASE_VERSION=4.22.1\n` },
      }),
    },
    {
      name: 'an upgrade ISO does not name its release',
      base,
      part: 'upgrade',
      change: () => ({ files: { '/release.env': null } }),
    },
    {
      name: 'an upgrade ISO has another label',
      base,
      part: 'upgrade',
      change: () => ({ bytes: (iso) => iso.write('UPGRAD', 16 * 2048 + 40, 'latin1') }),
    },
  ];
}
