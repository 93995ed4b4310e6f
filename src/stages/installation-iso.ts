import type { Digest } from '../base/digest.ts';
import { fileOf } from '../base/disk/file-digests.ts';
import { ConfigError, IntegrityError } from '../base/errors.ts';
import { decodeLogin } from '../base/http/address.ts';
import { withoutUndefined } from '../base/lists.ts';
import { Secret } from '../base/secret.ts';
import { formatValidIgnition } from '../ignition/index.ts';
import { renderInstallationIgnition } from '../openshift/installation/ignition.ts';
import {
  describeServer,
  planLocalMirrors,
  type LocalRegistry,
} from '../openshift/installation/mirrors.ts';
import { requireSeedVersion } from '../openshift/installation/seed.ts';
import { mergeMirrorPlan } from '../openshift/mirror/plan.ts';
import type { BaseIso, GivenBaseIso, StreamIso } from '../openshift/release/base-iso.ts';
import { describeSignatures, type Release } from '../openshift/release/release.ts';
import { noteOfStream } from '../openshift/release/upgrade-path.ts';
import { roomOf } from '../outputs/place.ts';
import {
  scanBase,
  fetchBaseIso,
  readCoreosStream,
  type CoreosStream,
  takeBaseIso,
} from './1-resolve/fetch-base-iso.ts';
import { compareSeed, readSeed } from './1-resolve/read-seed.ts';
import { checkIsoSize } from './4-lay-out/check-size.ts';
import { layOutInstallationIso } from './4-lay-out/lay-out-installation-iso.ts';
import type { IsoProduct } from './build.ts';
import { architectureOf, planEmbedded, resolveNamedRelease } from './embedded-images.ts';
import {
  describeInstallationIso,
  summarizeInstallationPlan,
  type InstallationFacts,
  type InstallationIsoPlan,
  type PreparedInstallationIso,
} from './report/installation-iso.ts';
import type { EmbeddedImages, InstallationIsoRequest } from './request.ts';
import type { BuildTools } from './tools.ts';

/* The installation ISO as a product: it connects the steps that decide its bytes. */

export const INSTALLATION_ISO: IsoProduct<
  InstallationIsoRequest,
  PreparedInstallationIso,
  InstallationFacts,
  InstallationIsoPlan
> = {
  name: 'installation-iso',
  prepare: prepareInstallationIso,
  describe: describeInstallationIso,
  summarize: summarizeInstallationPlan,
  listBlobs: (_request, { embedded }) => embedded?.plan.blobs ?? [],
  pour: async ({ lanes }, { base, embedded }) => ({
    lanes,
    base: await fileOf(base),
    blobs: (embedded?.plan ?? NO_IMAGES).blobs,
    mode: 0o600, // the pull secret is on it
  }),
};

async function prepareInstallationIso(
  request: InstallationIsoRequest,
  tools: BuildTools,
): Promise<PreparedInstallationIso> {
  const { config, epoch } = request;
  const { engine, resolved, registriesConf } = tools;
  checkInstallation(request); // before anything is fetched
  const seed = describeSeed(config);
  resolved.require({ seed });
  const places = await tools.takeOver();
  const release = await resolveNamedRelease(request, tools);
  const embedded = await planEmbedded(request, tools, release);
  const seedNotes = await checkSeed(request, tools);
  const given = await nameBase(request, tools);
  const base = await findBase(given, tools, release);
  const file = await fileOf(base);
  const differences = await engine.run(compareSeed, {
    base: file,
    seedVersion: config.seedVersion,
    ...(release && { releaseVersion: release.version }),
  });
  if (request.isStrict === true) refuseDifferences(differences);
  const releases = release ? [release] : [];
  const made = await engine.run(layOutInstallationIso, {
    base: file,
    scan: engine.run(scanBase, { base: file }),
    architecture: seed.architecture,
    ignition: new Secret(renderIgnition(request, embedded)),
    ...withoutUndefined({ epoch, places }),
    release: seed,
    ...(embedded && { embedded: { plan: embedded.plan, releases } }),
  });
  const { layout } = made;
  const plan = embedded?.plan ?? NO_IMAGES;
  const space = await engine.run(checkIsoSize, { layout, plan, ...roomOf(request) });
  const settled = await resolved.settle({
    product: INSTALLATION_ISO.name,
    releases,
    plan,
    catalogs: [],
    seed,
    base: { digest: base.digest, ...withoutUndefined({ url: publicUrlOf(request, given) }) },
    layout,
  });
  return {
    ...made,
    ...settled,
    base,
    registriesConf,
    unlike: [...seedNotes, ...differences],
    signatures: describeSignatures(releases),
    space,
    ...(embedded && { embedded }),
  };
}

/** Compares the seed with the configuration, if the medium carries it: other seeds may be out of reach. */
async function checkSeed(
  { config, embed: { seed, precached } }: InstallationIsoRequest,
  { engine }: BuildTools,
): Promise<readonly string[]> {
  if (!seed && !precached) return [];
  const { seedImage, seedVersion } = config;
  const found = await engine.run(readSeed, { seedImage, arch: architectureOf(config) });
  const version = found?.version ?? '';
  requireSeedVersion(seedVersion, version);
  return version === '' ? ['the seed image does not tell its version: it may be no seed'] : [];
}

function refuseDifferences([difference]: readonly string[]): void {
  if (difference === undefined) return;
  throw new ConfigError('installation.unlike-seed', difference, {
    hint: 'name the release or the live ISO of the seed, or leave --strict out',
  });
}

/** Describes what the medium installs, for its index. */
const describeSeed = (config: InstallationIsoRequest['config']) => ({
  version: config.seedVersion,
  reference: config.seedImage,
  architecture: architectureOf(config),
});

const NO_IMAGES = mergeMirrorPlan({ images: [], blocked: [] });

type Configured = Pick<InstallationIsoRequest, 'config' | 'postScript'>;

/**
 * Checks that the live system accepts the configuration.
 *
 * @throws ConfigError `installation.override`
 */
export function checkInstallation(configured: Configured): void {
  renderIgnition(configured);
}

/** The Ignition config holds the pull secret: no stage stores it and no fingerprint shows it. */
function renderIgnition({ config, postScript }: Configured, embedded?: EmbeddedImages): string {
  const override = config.ignitionConfigOverride?.reveal();
  const localRegistry = embedded && describeRegistry(embedded, config.releaseRegistry);
  const ignition = renderInstallationIgnition({
    settings: config,
    pullSecret: config.pullSecret.reveal(),
    ...withoutUndefined({ ignitionConfigOverride: override, postScript, localRegistry }),
  });
  try {
    return formatValidIgnition(ignition, 'Ignition config of the installation ISO');
  } catch (cause) {
    if (!(cause instanceof IntegrityError) || override === undefined) throw cause;
    throw new ConfigError(
      'installation.override',
      'ignitionConfigOverride conflicts with the configuration of the installer',
      {
        cause,
        hint: 'remove its entries at the paths that the ISO uses, and at their parent folders',
      },
    );
  }
}

const describeRegistry = (
  { plan, server }: EmbeddedImages,
  releaseRegistry: string,
): LocalRegistry => ({
  image: describeServer(
    plan.registryImage ?? { source: server.reference },
    server.useDistributionEntrypoint,
  ),
  mirrors: planLocalMirrors(plan.images, releaseRegistry),
});

/** The live ISO to build on, as it is named; undefined: the ISO of the release. */
async function nameBase(
  { base, config }: InstallationIsoRequest,
  { engine, resolved }: BuildTools,
): Promise<GivenBaseIso | undefined> {
  if (base === undefined) return undefined;
  if (!isStream(base)) return requireLockedBase(base, resolved);
  const arch = architectureOf(config);
  const named =
    findLockedStream(base, resolved) ??
    (await engine.run(readCoreosStream, { stream: base, arch }));
  if ('streamUrl' in base) resolved.note(noteOfStream(base.streamUrl), named.sha256);
  return requireLockedBase(named, resolved);
}

function findBase(
  given: GivenBaseIso | undefined,
  { engine }: BuildTools,
  release: Release | undefined,
): Promise<BaseIso> {
  if (given) return engine.run(takeBaseIso, { given });
  if (release) return engine.run(fetchBaseIso, { release });
  throw new Error('a request names a live ISO or a release');
}

/** A stream at an address is not asked if the lock has its answer. */
function findLockedStream(
  stream: CoreosStream,
  { locked }: BuildTools['resolved'],
): StreamIso | undefined {
  const held = locked?.base;
  if (held?.url === undefined || !('streamUrl' in stream)) return undefined;
  return { url: held.url, sha256: held.digest as Digest };
}

/** Checks the base ISO against the lock, before it is fetched. */
function requireLockedBase(
  given: GivenBaseIso,
  { locked, require }: BuildTools['resolved'],
): GivenBaseIso {
  const found = 'sha256' in given ? given.sha256 : undefined;
  if (locked?.base && found !== undefined) require({ base: { digest: found } });
  return given;
}

/** The address of an ISO that a stream named, as far as a lock may have it: a lock has no secret. */
const publicUrlOf = (
  { base }: InstallationIsoRequest,
  given: GivenBaseIso | undefined,
): string | undefined =>
  base && given && isStream(base) && 'url' in given && !decodeLogin(new URL(given.url))
    ? given.url
    : undefined;

const isStream = (base: GivenBaseIso | CoreosStream): base is CoreosStream =>
  'streamFile' in base || 'streamUrl' in base;
