import { SealiftError, formatSentence } from '../../base/errors.ts';
import { findIgnitionWarnings, parseIgnition } from '../../ignition/index.ts';
import type { Layout } from '../../iso/index.ts';
import type { BaseIso } from '../../openshift/release/base-iso.ts';
import type { RpmArchitecture } from '../../openshift/release/bundle.ts';
import { describeOutput, type DescribedOutput } from '../../outputs/file.ts';
import { formatReference, parseReference } from '../../registry/index.ts';
import type { DescribedSignature } from '../1-resolve/verify-release.ts';
import { architectureOf } from '../2-select/embed-images.ts';
import type { Space } from '../4-lay-out/check-size.ts';
import type { EmbedAreaUse } from '../4-lay-out/lay-out-installation-iso.ts';
import type { MadeIso } from '../5-pour/pour.ts';
import type { EmbeddedImages, InstallationIsoRequest } from '../request.ts';
import type { Lock } from '../resolved/record.ts';
import type { TagDigests } from '../resolved/tags.ts';

/** Everything that is decided before the first byte of the ISO is written. */
export type PreparedInstallationIso = {
  readonly base: BaseIso;
  /** What tags named. */
  readonly tags: TagDigests;
  /** A digest of everything that is carried. */
  readonly contents: string;
  readonly lock: Lock;
  readonly layout: Layout;
  readonly embedArea: EmbedAreaUse;
  /** Absent where the medium carries no images. */
  readonly embedded?: EmbeddedImages;
  /** The files with mirrors that were read, in order: a later one replaces entries. */
  readonly registriesConf: readonly string[];
  /** Of the release, where one is named. */
  readonly signatures: readonly DescribedSignature[];
  readonly space: Space;
};

/** What is known of an installation ISO before it is poured. */
type Announced = DescribedOutput & {
  readonly format: 1;
  readonly product: 'installation-iso';
  /** Bytes. */
  readonly isoSize: number;
  readonly architecture: RpmArchitecture;
  readonly base: { readonly digest: string; readonly from: string; readonly size: number };
  readonly seedImage: string;
  readonly seedVersion: string;
  readonly installationDisk: string;
  /** Room for the Ignition config: bytes it takes, that the base has, and that the ISO has instead. */
  readonly embedArea: Omit<EmbedAreaUse, 'replaced'>;
  /** What the medium serves by itself; absent where it carries no images. */
  readonly embedded?: {
    /** By digest, as they are named elsewhere. */
    readonly images: readonly string[];
    readonly registryImage: string;
    readonly blobs: number;
    /** Every blob once. */
    readonly payloadSize: number;
  };
  /** Of the release, where one is named. */
  readonly signatures: readonly DescribedSignature[];
  /** What each tag named: `--plan` takes these digests. */
  readonly tags: TagDigests;
  /** A digest of everything that is carried. */
  readonly contents: string;
  readonly secretsOnMedia: readonly string[];
  /** What could not be checked, or may be missed. */
  readonly notes: readonly string[];
  /** The files with mirrors that were read, in order: a later one replaces entries. */
  readonly registriesConf: readonly string[];
  readonly unverifiedTls: readonly string[];
  /** What stays on disk for the next build. */
  readonly cache: string;
};

export type InstallationIsoReport = Announced & MadeIso;

/** What `sealift plan` reports for an installation ISO. Sizes are bytes. */
export type InstallationIsoPlan = Announced & Space;

export const summarizeInstallationPlan = (
  request: InstallationIsoRequest,
  prepared: PreparedInstallationIso,
): InstallationIsoPlan => ({ ...describeInstallationIso(request, prepared), ...prepared.space });

export function describeInstallationIso(
  request: InstallationIsoRequest,
  { base, layout, tags, contents, embedded, registriesConf, ...made }: PreparedInstallationIso,
): Announced {
  const { config } = request;
  const { replaced, ...area } = made.embedArea;
  return {
    format: 1,
    product: 'installation-iso',
    ...describeOutput(request),
    isoSize: layout.size,
    architecture: architectureOf(config),
    base: { digest: base.digest, from: base.from, size: base.size },
    seedImage: config.seedImage,
    seedVersion: config.seedVersion,
    installationDisk: config.installationDisk,
    embedArea: area,
    ...(embedded && { embedded: describeEmbedded(embedded) }),
    tags,
    contents,
    signatures: made.signatures,
    secretsOnMedia: listSecrets(request),
    notes: [...request.notes, ...listNotes(request, replaced)],
    registriesConf,
    unverifiedTls: request.build.insecureRegistries,
    cache: request.workDir,
  };
}

function describeEmbedded({
  plan,
  server,
}: EmbeddedImages): NonNullable<InstallationIsoReport['embedded']> {
  const { images, registryImage, blobs, blobSize } = plan;
  return {
    images: images.map(({ source }) => formatReference(source)),
    registryImage: formatReference(registryImage?.source ?? server.reference),
    blobs: blobs.length,
    payloadSize: blobSize,
  };
}

/** What on the media is not for everybody. */
function listSecrets({ config, postScript }: InstallationIsoRequest): readonly string[] {
  return [
    'pullSecret',
    ...(config.sshKey === '' ? [] : ['sshKey (public key of core)']),
    ...(config.proxy === undefined ? [] : ['proxy (and what its URLs hold)']),
    ...(config.ignitionConfigOverride ? ['ignitionConfigOverride (contents not inspected)'] : []),
    ...(postScript ? ['post.sh (contents not inspected)'] : []),
  ];
}

/**
 * What the build takes and the factory may stumble over; no secret. `replaced` are the files that the
 * base had in its embed area.
 */
const listNotes = (
  request: InstallationIsoRequest,
  replaced: readonly string[],
): readonly string[] => [
  ...noteReplaced(replaced),
  ...noteSeed(request),
  ...noteOverride(request),
  ...noteMissing(request),
];

/** Somebody has prepared this base, and may count on it. */
const noteReplaced = (names: readonly string[]): readonly string[] =>
  names.length === 0
    ? []
    : [
        `the base ISO was customized: ${names.join(', ')} in its embed area gave way to the new config`,
      ];

/** openshift-install takes any text; the live system asks for it again and again. */
function noteSeed({ config: { seedImage } }: InstallationIsoRequest): readonly string[] {
  try {
    parseReference(seedImage);
    return [];
  } catch (error) {
    if (!(error instanceof SealiftError)) throw error;
    return [`no registry can have the seed image: ${error.message}`];
  }
}

const OVERRIDE = 'ignitionConfigOverride';

/** Ignition only warns of these, where nobody is looking. */
function noteOverride({ config }: InstallationIsoRequest): readonly string[] {
  const override = config.ignitionConfigOverride?.reveal();
  if (override === undefined) return [];
  const parsed = parseIgnition(override, OVERRIDE);
  return findIgnitionWarnings(parsed, OVERRIDE).map(formatSentence);
}

/** A factory without registries learns of it too late otherwise. */
const noteMissing = ({ embed }: InstallationIsoRequest): readonly string[] =>
  embed.seed && !embed.precached && !embed.release
    ? ['the images that the seed precaches are not on the ISO: they are pulled while it installs']
    : [];
