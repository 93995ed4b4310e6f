import { createHash, randomBytes } from 'node:crypto';
import { hexOf, type Digest } from '../../base/digest.ts';
import { withoutUndefined } from '../../base/lists.ts';
import {
  type File,
  IGNITION_VERSION,
  type IgnitionConfig,
  textFile,
  type Unit,
} from '../../ignition/index.ts';
import {
  findInternalReleaseImage,
  findServedKind,
  PINNED_IMAGE_SET,
  type ResourceDefinition,
} from '../release/manifests.ts';
import { planPinnedImageSets } from './cluster.ts';
import { planCustomResources, type NodeManifest } from './manifests.ts';
import {
  renderNodeRegistry,
  renderRegistryEnvironment,
  type NodeRegistry,
  type RegistryCarrier,
  type RegistryImage,
  renderEnabledUnit,
  renderScript,
  renderText,
  renderUnit,
} from './registry.ts';
import { renderDiskMenu } from './recovery.ts';
import { renderUpgradeHost } from './upgrade.ts';

/** The registry's tree on the medium. */
export type EmbeddedTree = {
  /** Bytes of blobs and manifests. */
  readonly size: number;
  /** Digest over the name and the digest of every file. */
  readonly digest: Digest;
};

export type InstallInput = {
  readonly registryImage: RegistryImage;
  readonly interactive: boolean;
  /** Definitions in the release's payload. */
  readonly definitions: readonly ResourceDefinition[];
  /** True if the cluster stops the registry after it is installed. */
  readonly stopLocalRegistry: boolean;
  /** True if installed hosts do not run our registry, because the cluster's own takes over. */
  readonly skipLocalRegistry: boolean;
  /** Hosts copy the registry's data to their disk, or always read it from the medium. */
  readonly registryData: 'copy' | 'medium';
  /** Default: `iso`. */
  readonly registryOn?: RegistryCarrier;
  /** Further kernel arguments of the recovery entry, if the registry is on a partition. */
  readonly menuKargs?: readonly string[];
  readonly registryTree: EmbeddedTree;
  readonly createPinnedImageSets: boolean;
  /** References of the images to pin, as they are named before mirroring. */
  readonly pinnedImages: readonly string[];
  /** Custom resources that wait for their operators, as the user wrote them. */
  readonly crs: readonly NodeManifest[];
};

/** Replaced by the file at this path on the rendezvous host, which alone knows its address. */
export const RENDEZVOUS_PLACEHOLDER = 'placeholder-content-for-rendezvous-host.env';

/** Directory that the script which stops the registry also checks for PinnedImageSets. */
const PINNED_IMAGE_SETS = '/etc/assisted/pinned-image-sets';
const CUSTOM_RESOURCES = '/etc/assisted/extra-manifests/post-installation';

/**
 * Applied by every host at the first boot from its disk. It travels inside the bootstrap configuration and
 * reaches the hosts through the assisted service.
 */
export function renderInstallIgnition(input: InstallInput): IgnitionConfig {
  const parts = [
    renderCommon(),
    renderRegistry(input),
    renderRegistryCopy(input),
    renderUpgrade(input),
    renderPinnedImageSets(input),
    renderCustomResources(input.crs),
    ...(input.registryOn === 'partition' ? [renderRecovery(input.menuKargs)] : []),
  ];
  return {
    ignition: { version: IGNITION_VERSION },
    storage: { files: parts.flatMap((part) => part.files) },
    systemd: { units: parts.flatMap((part) => part.units) },
  };
}

/** The menu entry by which an installed host starts the recovery partition; it is never the default. */
const renderRecovery = (kargs: readonly string[] = []): Part => ({
  files: [
    renderScript('add-grub-menuitem.sh'),
    textFile('/etc/assisted/user.cfg', renderDiskMenu({ stage: 'installed', kargs }), 0o644),
  ],
  units: [renderEnabledUnit('add-grub-menuitem.service')],
});

type Part = { readonly files: readonly File[]; readonly units: readonly Unit[] };

function renderCommon(): Part {
  return {
    files: [
      renderScript('set-installed-node-zero.sh'),
      textFile('/etc/assisted/rendezvous-host.env', RENDEZVOUS_PLACEHOLDER, 0o644),
      textFile('/etc/udev/rules.d/99-live-iso.rules', renderText('files/99-live-iso.rules'), 0o600),
    ],
    units: [
      renderEnabledUnit('set-installed-node-zero.service'),
      renderEnabledUnit('node-zero-installed.path'),
      renderUnit('node-zero-installed.target'),
      renderUnit('mount-live-iso@.service'),
    ],
  };
}

function renderRegistry(input: InstallInput): Part {
  const registry: NodeRegistry = {
    image: input.registryImage,
    interactive: input.interactive,
    stage: 'installed',
    ...withoutUndefined({ registryOn: input.registryOn }),
    internalReleaseImage:
      input.interactive && findInternalReleaseImage(input.definitions) !== undefined,
  };
  if (input.skipLocalRegistry) {
    return { files: [renderRegistryEnvironment(registry)], units: [] };
  }
  const { files, units } = renderNodeRegistry(registry);
  if (!input.stopLocalRegistry) return { files, units };
  return {
    files: [
      ...files,
      renderScript('stop-local-registry.sh'),
      renderScript('drop-registry-mirrors.sh'),
    ],
    units: [
      ...units,
      renderEnabledUnit('stop-local-registry.service'),
      renderEnabledUnit('drop-registry-mirrors.service'),
    ],
  };
}

/** Makes a host independent of the medium: by its own copy of the data, or one that the installer made. */
function renderRegistryCopy({ skipLocalRegistry, registryData, registryTree }: InstallInput): Part {
  if (skipLocalRegistry) return { files: [], units: [] };
  const script = renderScript('copy-registry-data.sh', {
    'registry-data': registryData,
    'tree-size': String(registryTree.size),
    'tree-digest': hexOf(registryTree.digest),
  });
  return { files: [script], units: [renderEnabledUnit('copy-registry-data.service')] };
}

/** Without the mirrors or the registry of these files, no cluster can be upgraded from an ISO. */
function renderUpgrade(input: InstallInput): Part {
  const { interactive, skipLocalRegistry, stopLocalRegistry } = input;
  if (interactive || skipLocalRegistry || stopLocalRegistry) return { files: [], units: [] };
  return renderUpgradeHost();
}

/**
 * Repeats the sets of the installation, which have no effect while they are a technology preview. A release
 * that never serves them gets the files alone: a registry that waits for pinned images then runs forever.
 */
function renderPinnedImageSets(input: InstallInput): Part {
  const manifests = planPinnedImageSets(input);
  if (manifests.length === 0) return { files: [], units: [] };
  const files = manifests.map(({ name, text }) =>
    textFile(`${PINNED_IMAGE_SETS}/${name}`, text, 0o644),
  );
  if (findServedKind(input.definitions, PINNED_IMAGE_SET) === undefined) {
    return { files, units: [] };
  }
  return {
    files: [renderScript('create-pinned-image-sets.sh'), ...files],
    units: [renderEnabledUnit('create-pinned-image-sets.service')],
  };
}

/** The script gets the namespaces in an index, because no host has a program that reads YAML. */
function renderCustomResources(crs: readonly NodeManifest[]): Part {
  const resources = planCustomResources(crs);
  if (resources.length === 0) return { files: [], units: [] };
  const index = resources.map(({ name, namespace }) => `${namespace ?? '-'} ${name}\n`).join('');
  return {
    files: [
      renderScript('apply-operator-crs.sh'),
      textFile(`${CUSTOM_RESOURCES}/index`, index, 0o600),
      ...resources.map(({ name, text }) => textFile(`${CUSTOM_RESOURCES}/${name}`, text, 0o600)),
    ],
    units: [renderEnabledUnit('apply-operator-crs.service')],
  };
}

const ALPHABET = './0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const ROUNDS = 5000;
const SALT_SIZE = 16;

/**
 * `$6$salt$hash`: Ulrich Drepper's "Unix crypt using SHA-256 and SHA-512", version 0.6, with its 5000 rounds.
 * The caller's salt, so that same inputs give the same medium; 1 to 16 of `./0-9A-Za-z`. Takes about 20 ms.
 */
export function hashCorePassword(password: string, salt: string): string {
  if (!/^[./0-9A-Za-z]{1,16}$/.test(salt)) {
    throw new Error(`salt has ${salt.length} characters, or others than ./0-9A-Za-z`);
  }
  const key = Buffer.from(password);
  const saltBytes = Buffer.from(salt);
  const start = mixFirst(key, saltBytes);
  const p = stretch(sha512(repeat(key, key.length)), key.length);
  const s = stretch(sha512(repeat(saltBytes, 16 + (start[0] ?? 0))), saltBytes.length);
  let digest = start;
  for (let round = 0; round < ROUNDS; round++) {
    const isOdd = round % 2 === 1;
    const parts = [isOdd ? p : digest];
    if (round % 3 !== 0) parts.push(s);
    if (round % 7 !== 0) parts.push(p);
    parts.push(isOdd ? digest : p);
    digest = sha512(...parts);
  }
  return `$6$${salt}$${encode(digest)}`;
}

/** 16 of crypt's characters at random: 96 bits. */
export const drawSalt = (): string =>
  [...randomBytes(SALT_SIZE)].map((byte) => ALPHABET[byte & 63]).join('');

/** Steps 1 to 12 of the description. */
function mixFirst(key: Buffer, salt: Buffer): Buffer {
  const alternate = sha512(key, salt, key);
  const parts = [key, salt, stretch(alternate, key.length)];
  for (let bits = key.length; bits > 0; bits >>= 1) {
    parts.push((bits & 1) === 1 ? alternate : key);
  }
  return sha512(...parts);
}

function sha512(...parts: readonly Uint8Array[]): Buffer {
  const hash = createHash('sha512');
  for (const part of parts) hash.update(part);
  return hash.digest();
}

const repeat = (bytes: Buffer, count: number): Buffer =>
  Buffer.concat(Array.from({ length: count }, () => bytes));

/** The digest repeated until it has `size` bytes. */
const stretch = (digest: Buffer, size: number): Buffer => Buffer.alloc(size, digest);

/** Step 22: groups of three bytes, 21 apart and turning, each as four characters, lowest bits first. */
function encode(digest: Buffer): string {
  let text = '';
  for (
    let group = 0, [a, b, c] = [0, 21, 42];
    group < 21;
    group++, [a, b, c] = [b + 1, c + 1, a + 1]
  ) {
    text += encodeBits([digest[a], digest[b], digest[c]], 4);
  }
  return text + encodeBits([0, 0, digest[63]], 2);
}

function encodeBits(bytes: readonly (number | undefined)[], count: number): string {
  const [high = 0, middle = 0, low = 0] = bytes;
  const bits = (high << 16) | (middle << 8) | low;
  return Array.from({ length: count }, (_, index) => ALPHABET[(bits >> (6 * index)) & 63]).join('');
}
