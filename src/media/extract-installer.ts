import { createReadStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Digest } from '../base/digest.ts';
import { nameAside } from '../base/disk/aside.ts';
import { checkOutputPlace, claimOutput } from '../base/disk/claim-output.ts';
import { explainDiskFailure } from '../base/disk/disk-errors.ts';
import { digestFile, syncDirectory } from '../base/disk/files.ts';
import { IntegrityError, SealiftError } from '../base/errors.ts';
import { maxOf, withoutUndefined } from '../base/lists.ts';
import { parseResolved } from '../ignition/index.ts';
import { type IsoImage, readCoreosLive } from '../iso/index.ts';
import {
  describeLiveSystem,
  findReleaseImage,
  findReleaseVersion,
} from '../openshift/agent/live-system.ts';
import {
  describeForInstaller,
  INSTALLER_PATH,
  installerComponent,
  writeInstallerMarkers,
  type InstallerRelease,
} from '../openshift/installer/installer.ts';
import {
  digestOfRelease,
  getComponent,
  IMAGE_REFERENCES_PATH,
  parseImageReferences,
  parseReleaseMetadata,
  RELEASE_METADATA_PATH,
  type Release,
} from '../openshift/release/release.ts';
import { isElsewhere } from '../outputs/read/open.ts';
import { extractFile, readFiles } from '../registry/index.ts';
import { INDEX_PATH, readIndex } from './media-index.ts';
import { readEmbeddedIgnition, useMedium, type IsoSource } from './open.ts';
import { openImageOf, openPayload } from './payload.ts';
import { verifyMediumRelease, type ReleaseTrust } from './release-signature.ts';

export type ExtractInstallerRequest = {
  readonly medium: IsoSource;
  /** Absolute path of the directory for the installer. */
  readonly directory: string;
  /** Default: according to the kernel arguments of the medium. */
  readonly fips?: boolean;
  readonly force: boolean;
  readonly trust: ReleaseTrust;
};

export type ExtractedInstaller = {
  readonly path: string;
  readonly digest: Digest;
  readonly size: number;
  readonly fips: boolean;
  /** Release image that the installer writes into cluster-image-sets; the live system compares it. */
  readonly releaseImage: string;
  readonly version: string;
  /** Fingerprint of the key that signed the release; absent if it has no signature. */
  readonly signedBy?: string;
};

/**
 * Writes `openshift-install` (`openshift-install-fips` for FIPS, as `oc` names it) from the registry of the
 * medium. It gets the release image and version of the medium's cluster-image-set, so that the medium accepts
 * its configuration images. It is an executable: its release must be signed.
 *
 * @throws errors of `verifyMediumRelease`, IntegrityError `medium.no-index`, `medium.other-product`, `medium.no-image`,
 * `medium.blob-damaged`, `medium.release-conflict`, `release.component-missing`,
 * `installer.other-release`; UsageError `output.exists` and others of `claimOutput`; DiskError
 */
export async function extractInstaller(
  request: ExtractInstallerRequest,
  signal: AbortSignal,
): Promise<ExtractedInstaller> {
  return useMedium(request.medium, async (iso) => {
    const release = await readRelease(iso, signal);
    const signed = { version: release.version, digest: digestOfRelease(release) };
    const signedBy = await verifyMediumRelease(iso, signed, request.trust);
    const fips = request.fips ?? (await hasFipsKernelArgument(iso));
    const name = fips ? 'openshift-install-fips' : 'openshift-install';
    const place = {
      path: join(request.directory, name),
      inputs: isElsewhere(iso.path) ? [] : [iso.path],
    };
    await checkOutputPlace(place);
    const told = await describeTold(iso, release);
    const aside = await nameAside(place.path);
    try {
      const size = await writeInstaller({ iso, release, fips, aside, told }, signal);
      const digest = await digestFile(aside, signal);
      const isReplaceable = async (): Promise<boolean> =>
        (await digestFile(place.path, signal)) === digest;
      const expected = 'the same installer';
      await claimOutput(place, { force: request.force, expected, isReplaceable });
      await rename(aside, place.path);
      await syncDirectory(dirname(place.path));
      return {
        path: place.path,
        digest,
        size,
        fips,
        releaseImage: told.image,
        version: told.version,
        ...withoutUndefined({ signedBy }),
      };
    } finally {
      await rm(aside, { force: true });
    }
  });
}

type MediumRelease = Pick<Release, 'reference' | 'version' | 'arch' | 'metadata' | 'components'>;

async function readRelease(iso: IsoImage, signal: AbortSignal): Promise<MediumRelease> {
  const index = await readIndex(iso);
  if (!index) throw await explainForeign(iso);
  if (index.product !== 'live-iso') {
    throw new IntegrityError(
      'medium.other-product',
      `${iso.path} does not install clusters: it is an ${index.product}`,
      { expected: 'a live-iso', found: index.product, hint: 'name the live ISO' },
    );
  }
  const { reference, arch, layers } = await openPayload(iso, index, signal);
  const files = await readFiles(
    layers,
    (path) => path === IMAGE_REFERENCES_PATH || path === RELEASE_METADATA_PATH,
    { signal },
  );
  const text = (path: string): string => Buffer.from(files.get(path) ?? []).toString('utf8');
  const { components } = parseImageReferences(text(IMAGE_REFERENCES_PATH));
  const metadata = parseReleaseMetadata(text(RELEASE_METADATA_PATH));
  return { reference, arch, version: metadata.version, metadata, components };
}

/** Explains a medium of another maker, with the release that it installs if that is known. */
async function explainForeign(iso: IsoImage): Promise<IntegrityError> {
  const image = await findToldImage(iso);
  const release = image ?? 'quay.io/openshift-release-dev/ocp-release@sha256:... of the ISO';
  return new IntegrityError(
    'medium.no-index',
    `${iso.path} was not made by sealift, so its release image is not known`,
    {
      expected: INDEX_PATH,
      found: 'no such file',
      hint: `run "oc adm release extract --command openshift-install ${release}"`,
    },
  );
}

async function findToldImage(iso: IsoImage): Promise<string | undefined> {
  try {
    const imageSet = await readImageSet(iso);
    return imageSet && findReleaseImage(imageSet);
  } catch (error) {
    if (error instanceof SealiftError) return undefined; // not a live ISO of CoreOS
    throw error;
  }
}

/** Reads the cluster-image-set from the Ignition config of a medium. */
async function readImageSet(iso: IsoImage): Promise<Uint8Array | undefined> {
  const embedded = await readEmbeddedIgnition(iso);
  if (embedded === undefined) return undefined;
  return describeLiveSystem([parseResolved(embedded, 'embedded Ignition config')]).clusterImageSet;
}

async function hasFipsKernelArgument(iso: IsoImage): Promise<boolean> {
  const { kargs } = await readCoreosLive(iso);
  return kargs.text.split(/\s+/).includes('fips=1');
}

/**
 * As the medium's own installer got it when the medium was made: the live system compares it as text. Media
 * with embedded templates have no cluster-image-set and accept no configuration images.
 */
async function describeTold(iso: IsoImage, release: MediumRelease): Promise<InstallerRelease> {
  const described = describeForInstaller(release);
  const clusterImageSet = await readImageSet(iso);
  const image = clusterImageSet && findReleaseImage(clusterImageSet);
  if (clusterImageSet === undefined || image === undefined) return described;
  const digest = release.reference.digest ?? '';
  if (!image.endsWith(`@${digest}`)) {
    throw new IntegrityError(
      'medium.release-conflict',
      'the Ignition config of the medium installs a release that the medium does not carry',
      { expected: described.image, found: image, hint: 'build the medium again' },
    );
  }
  const version = findReleaseVersion(clusterImageSet) ?? described.version;
  return { ...described, image, version };
}

type Writing = {
  readonly iso: IsoImage;
  readonly release: MediumRelease;
  readonly fips: boolean;
  readonly aside: string;
  readonly told: InstallerRelease;
};

/** @returns its size in bytes */
async function writeInstaller(
  { iso, release, fips, aside, told }: Writing,
  signal: AbortSignal,
): Promise<number> {
  const component = installerComponent(fips);
  const image = {
    name: component,
    reference: getComponent(release, component),
    arch: release.arch,
  };
  const layers = await openImageOf(iso, image, signal);
  const directory = dirname(aside);
  const { size } = await extractFile(layers, INSTALLER_PATH, aside, { signal }).catch(
    (error: unknown) => {
      const needed = maxOf(
        layers.map(({ descriptor }) => descriptor.size),
        0,
      );
      throw explainDiskFailure(error, { directory, needed });
    },
  );
  const markers = await writeInstallerMarkers(aside, told);
  if (!markers.includes('image')) await requireRelease(aside, told.image);
  return size;
}

/** Requires that an installer whose release image is a constant, because it was built for one, has this one. */
async function requireRelease(path: string, image: string): Promise<void> {
  const wanted = Buffer.from(image);
  let tail = Buffer.alloc(0);
  for await (const piece of createReadStream(path, { highWaterMark: 1 << 20 })) {
    const window = Buffer.concat([tail, piece as Buffer]);
    if (window.includes(wanted)) return;
    tail = window.subarray(-wanted.length);
  }
  throw new IntegrityError(
    'installer.other-release',
    'the installer on the medium does not name the release, and has no place to write it',
    {
      expected: image,
      found: 'another release, or no release',
      hint: 'use the installer that made the medium',
    },
  );
}
