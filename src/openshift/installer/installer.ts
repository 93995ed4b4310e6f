import type { FileHandle } from 'node:fs/promises';
import { openOwnFile } from '../../base/disk/open-file.ts';
import { ConfigError, IntegrityError } from '../../base/errors.ts';
import { formatReference } from '../../registry/index.ts';
import { formatManifest } from '../node/manifests.ts';
import { type RpmArchitecture, archNames } from '../release/bundle.ts';
import type { Release } from '../release/release.ts';

export type InstallerInput = {
  readonly arch: RpmArchitecture;
  readonly sshKey?: string;
  /** Pull secret for the hosts; without one the installer gets a dummy, because it requires one. */
  readonly pullSecret?: string;
  readonly registriesConf: string;
  /** NMStateConfig manifests, one YAML document per host. */
  readonly nmstate?: string;
  /** The user's own InfraEnv, which replaces the rendered one. */
  readonly infraEnv?: string;
};

/** Name of the pull secret in the InfraEnv of the medium. */
export const PULL_SECRET_NAME = 'appliance-pull-secret';

/** Names no registry and opens none. */
const DUMMY_PULL_SECRET = '{"auths":{"":{"auth":"dXNlcjpwYXNz"}}}';

/**
 * Inputs of `openshift-install agent create unconfigured-ignition --dir`. They may hold the pull secret:
 * write them 0600. InfraEnv has no status, because older installers refuse members that they do not know.
 */
export function planInstallerInputs(
  input: InstallerInput,
): readonly { readonly path: string; readonly text: string }[] {
  const { nmstate, infraEnv = formatInfraEnv(input) } = input;
  return [
    { path: 'cluster-manifests/infraenv.yaml', text: infraEnv },
    { path: 'cluster-manifests/pull-secret.yaml', text: formatPullSecret(input.pullSecret) },
    ...(nmstate === undefined || nmstate.trim() === ''
      ? []
      : [{ path: 'cluster-manifests/nmstateconfig.yaml', text: nmstate }]),
    { path: 'mirror/registries.conf', text: input.registriesConf },
  ];
}

export const planInstallerArgs = (version: string, interactive: boolean): readonly string[] => [
  'agent',
  'create',
  'unconfigured-ignition',
  ...(interactive && supportsInteractiveFlag(version) ? ['--interactive'] : []),
];

/** True if this release's installer has the flag `--interactive`; others refuse it. */
const supportsInteractiveFlag = (version: string): boolean => /^4\.(?:19|20)(?:\.|$)/.test(version);

const formatInfraEnv = ({ arch, sshKey }: InstallerInput): string =>
  formatManifest({
    apiVersion: 'agent-install.openshift.io/v1beta1',
    kind: 'InfraEnv',
    metadata: { name: 'appliance' },
    spec: {
      cpuArchitecture: arch,
      pullSecretRef: { name: PULL_SECRET_NAME },
      ...(sshKey !== undefined && { sshAuthorizedKey: sshKey.trim() }),
    },
  });

const formatPullSecret = (pullSecret = DUMMY_PULL_SECRET): string =>
  formatManifest({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: PULL_SECRET_NAME },
    stringData: { '.dockerconfigjson': pullSecret },
    type: 'kubernetes.io/dockerconfigjson',
  });

/** The values that an installer needs about the release it is for. */
export type InstallerRelease = {
  /** The payload, by digest. */
  readonly image: string;
  readonly version: string;
  /** Go's name of the architecture, or `multi`. */
  readonly architecture: string;
};

/** The values that `oc adm release extract` writes into the installers of a release. */
export function describeForInstaller({
  reference,
  version,
  arch,
  metadata,
}: Pick<Release, 'reference' | 'version' | 'arch' | 'metadata'>): InstallerRelease {
  const several = metadata.metadata['release.openshift.io/architecture'];
  return {
    image: formatReference(reference),
    version,
    architecture: several ?? archNames.toGo(arch),
  };
}

const NAMES = {
  image: '_RELEASE_IMAGE_LOCATION_',
  version: '_RELEASE_VERSION_LOCATION_',
  architecture: '_RELEASE_ARCHITECTURE_LOCATION_',
} as const;

type Marker = keyof typeof NAMES;

/** With FIPS, the installer that is linked against RHEL's validated cryptography. */
export const installerComponent = (fips: boolean): string =>
  fips ? 'baremetal-installer' : 'installer';

/** Path inside the image of either installer. */
export const INSTALLER_PATH = 'usr/bin/openshift-install';

/** Go's names of the architectures that releases have a statically linked installer for. */
const MACHINES: readonly string[] = ['amd64', 'arm64'];

/**
 * Component and path of the installer that runs on a machine, as `oc adm release extract` finds them. On
 * other architectures it is the usual one, for FIPS too: validated cryptography exists for the machines of
 * the release alone, and the output does not depend on it.
 *
 * @throws ConfigError `installer.machine` if the release has no installer for the machine
 */
export function findInstaller(
  arch: RpmArchitecture,
  { machine, fips }: { readonly machine: string; readonly fips: boolean },
): { readonly component: string; readonly path: string } {
  if (machine === archNames.toGo(arch)) {
    return { component: installerComponent(fips), path: INSTALLER_PATH };
  }
  if (MACHINES.includes(machine)) {
    const path = `usr/share/openshift/linux_${machine}/openshift-install`;
    return { component: 'installer-artifacts', path };
  }
  throw new ConfigError(
    'installer.machine',
    `the release for ${arch} has no installer that runs on this machine`,
    {
      expected: [archNames.toGo(arch), ...MACHINES].join(', '),
      found: machine,
      hint: 'name an installer of this release that runs here in build.installer',
    },
  );
}

const CHUNK_SIZE = 4 << 20;
/** Bytes; more than any marker with its padding has. */
const OVERLAP = 4096;
const PADDING = 0x58; // X

/**
 * Writes the release into the places that an installer binary reserves for it: NUL, a name, NUL, a run of
 * `X`, NUL. The value and a NUL go over the start. Without this an installer installs the release that its
 * build happened to name. The file may be executed afterwards.
 *
 * Returns the markers that were found; a binary that was built for one release has no markers.
 *
 * @throws IntegrityError `installer.value-too-long`
 */
export async function writeInstallerMarkers(
  path: string,
  release: InstallerRelease,
): Promise<readonly Marker[]> {
  const file = await openOwnFile(path, { create: false });
  const found = new Set<Marker>();
  try {
    const { size } = await file.stat();
    const buffer = Buffer.alloc(Math.min(size, CHUNK_SIZE + OVERLAP));
    for (let start = 0; start < size; start += CHUNK_SIZE) {
      const length = await readFully(file, buffer, start);
      for (const place of findMarkers(buffer.subarray(0, length))) {
        if (place.offset >= CHUNK_SIZE) continue;
        await file.write(encodeValue(place, release), 0, null, start + place.offset);
        found.add(place.marker);
      }
    }
    await file.chmod(0o755);
    await file.sync();
  } finally {
    await file.close();
  }
  return [...found];
}

/** `room`: bytes from the first NUL up to the NUL that ends the padding, which is not counted. */
type Place = { readonly marker: Marker; readonly offset: number; readonly room: number };

function findMarkers(bytes: Buffer): Place[] {
  const places: Place[] = [];
  for (const marker of Object.keys(NAMES) as Marker[]) {
    const prefix = Buffer.from(`\0${NAMES[marker]}\0`, 'latin1');
    for (let at = bytes.indexOf(prefix); at !== -1; at = bytes.indexOf(prefix, at + 1)) {
      let end = at + prefix.length;
      while (bytes[end] === PADDING) end++;
      const isReserved = end > at + prefix.length && bytes[end] === 0;
      if (isReserved) places.push({ marker, offset: at, room: end - at });
    }
  }
  return places;
}

function encodeValue({ marker, room }: Place, release: InstallerRelease): Buffer {
  const value = Buffer.from(`${release[marker]}\0`, 'utf8');
  if (value.length <= room + 1) return value;
  throw new IntegrityError(
    'installer.value-too-long',
    `installer has room for a release ${marker} of ${room} bytes, but "${release[marker]}" has ${value.length - 1}`,
    { expected: `at most ${room} bytes`, found: `${value.length - 1} bytes` },
  );
}

async function readFully(file: FileHandle, buffer: Buffer, position: number): Promise<number> {
  let done = 0;
  while (done < buffer.length) {
    const { bytesRead } = await file.read(buffer, done, buffer.length - done, position + done);
    if (bytesRead === 0) break;
    done += bytesRead;
  }
  return done;
}
