import { IGNITION_VERSION, readGivenIgnition } from '../../ignition/index.ts';
import type { BaseIso } from '../../openshift/release/base-iso.ts';
import type { RpmArchitecture } from '../../openshift/release/bundle.ts';
import type { DescribedSignature } from '../../openshift/release/release.ts';
import { describeOutput, type DescribedOutput } from '../../outputs/place.ts';
import { formatReference } from '../../registry/index.ts';
import type { Space } from '../4-lay-out/check-size.ts';
import type { EmbedAreaUse } from '../4-lay-out/lay-out-installation-iso.ts';
import type { MadeIso } from '../5-pour/pour.ts';
import type { Decided } from '../build.ts';
import { architectureOf } from '../embedded-images.ts';
import type { EmbeddedImages, InstallationIsoRequest } from '../request.ts';
import type { TagDigests } from '../resolved/tags.ts';

/* The plan and the report of an installation ISO, with its notes and its list of secrets. */

export type PreparedInstallationIso = Decided & {
  readonly base: BaseIso;
  readonly embedArea: EmbedAreaUse;
  /** Absent if the medium carries no images. */
  readonly embedded?: EmbeddedImages;
  readonly registriesConf: readonly string[];
  /** Signatures of the release, if one is named. */
  readonly signatures: readonly DescribedSignature[];
  /** Differences of the release and of the live ISO from the seed, as sentences. */
  readonly unlike: readonly string[];
};

export type InstallationFacts = DescribedOutput & {
  readonly format: 1;
  readonly product: 'installation-iso';
  /** Bytes. */
  readonly isoSize: number;
  readonly architecture: RpmArchitecture;
  readonly base: { readonly digest: string; readonly from: string; readonly size: number };
  readonly seedImage: string;
  readonly seedVersion: string;
  readonly installationDisk: string;
  /** Room for the Ignition config in bytes: what it takes, what the base has, what the ISO has instead. */
  readonly embedArea: Omit<EmbedAreaUse, 'replaced'>;
  /** Images that the medium serves by itself; absent if it carries no images. */
  readonly embedded?: {
    /** References by digest, as images are named elsewhere. */
    readonly images: readonly string[];
    readonly registryImage: string;
    readonly blobs: number;
    /** Bytes; every blob counts once. */
    readonly payloadSize: number;
  };
  readonly signatures: readonly DescribedSignature[];
  /** Digests that tags named: `--plan` takes these digests. */
  readonly tags: TagDigests;
  /** A digest of everything that is carried. */
  readonly contents: string;
  readonly secretsOnMedia: readonly string[];
  /** Notes on values that could not be checked, or that may be missed. */
  readonly notes: readonly string[];
  readonly registriesConf: readonly string[];
  readonly unverifiedTls: readonly string[];
  /** Directory that stays on disk for the next build. */
  readonly cache: string;
};

export type InstallationIsoReport = InstallationFacts & MadeIso;

/** The report of `sealift plan` for an installation ISO. Sizes are bytes. */
export type InstallationIsoPlan = InstallationFacts & Space;

export const summarizeInstallationPlan = (
  request: InstallationIsoRequest,
  prepared: PreparedInstallationIso,
): InstallationIsoPlan => ({ ...describeInstallationIso(request, prepared), ...prepared.space });

export function describeInstallationIso(
  request: InstallationIsoRequest,
  { base, layout, tags, contents, embedded, registriesConf, ...made }: PreparedInstallationIso,
): InstallationFacts {
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
    notes: [...request.notes, ...made.unlike, ...listNotes(request, replaced)],
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

function listSecrets({ config, postScript }: InstallationIsoRequest): readonly string[] {
  return [
    'pullSecret',
    ...(config.sshKey === '' ? [] : ['sshKey (public key of core)']),
    ...(config.proxy === undefined ? [] : ['proxy (and any credentials in its URLs)']),
    ...(config.ignitionConfigOverride ? ['ignitionConfigOverride (contents not inspected)'] : []),
    ...(postScript ? ['post.sh (contents not inspected)'] : []),
  ];
}

/**
 * Lists notes on settings that the build accepts and the factory may have problems with; no
 * secret. `replaced` are the files that the base had in its embed area.
 */
const listNotes = (
  request: InstallationIsoRequest,
  replaced: readonly string[],
): readonly string[] => [
  ...noteReplaced(replaced),
  ...noteOverride(request),
  ...noteMissing(request),
];

/** Notes replaced files: the person who prepared this base may count on them. */
const noteReplaced = (names: readonly string[]): readonly string[] =>
  names.length === 0
    ? []
    : [
        `the base ISO was customized: the new config replaces ${names.join(', ')} in its embed area`,
      ];

const OVERRIDE = 'ignitionConfigOverride';

/** Notes the warnings about the override. Ignition only warns of these, where no person is looking. */
function noteOverride({ config }: InstallationIsoRequest): readonly string[] {
  const override = config.ignitionConfigOverride?.reveal();
  return override === undefined
    ? []
    : readGivenIgnition(override, OVERRIDE, IGNITION_VERSION).warnings;
}

/** Notes missing images: a factory without registries would otherwise find out too late. */
const noteMissing = ({ embed }: InstallationIsoRequest): readonly string[] =>
  embed.seed && !embed.precached && !embed.release
    ? ['the images that the seed precaches are not on the ISO: they are pulled while it installs']
    : [];
