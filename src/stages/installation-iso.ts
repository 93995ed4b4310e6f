import type { Digest } from '../base/digest.ts';
import { fileOf } from '../base/disk/file-digests.ts';
import { ConfigError, IntegrityError } from '../base/errors.ts';
import { readUserInfo } from '../base/http/address.ts';
import { withoutUndefined } from '../base/lists.ts';
import { Secret } from '../base/secret.ts';
import { formatValidIgnition } from '../ignition/index.ts';
import { renderInstallationIgnition } from '../openshift/installation/ignition.ts';
import { flatten, requireSame } from './resolved/fields.ts';
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
import { compareSeed, readSeedVersion } from './1-resolve/read-seed.ts';
import { checkIsoSize } from './4-lay-out/check-size.ts';
import { layOutInstallationIso } from './4-lay-out/lay-out-installation-iso.ts';
import { buildIso } from './build.ts';
import { architectureOf, planEmbedded, resolveNamedRelease } from './embedded-images.ts';
import {
  describeInstallationIso,
  type InstallationIsoReport,
  type PreparedInstallationIso,
} from './report/installation-iso.ts';
import type { EmbeddedImages, InstallationIsoRequest } from './request.ts';
import type { Lock } from './resolved/record.ts';
import {
  makeLock,
  findPlaces,
  heldBy,
  requireLocked,
  requireLockedInputs,
} from './resolved/use.ts';
import { reportMovedTags } from './resolved/moved-tags.ts';
import { digestContents, requirePlanned } from './resolved/saved-plan.ts';
import type { BuildTools } from './tools.ts';

/*
 * The installation ISO as a product: it connects the steps that decide its bytes, and hands them
 * to `buildIso`.
 */

/** Builds a sealed ISO from a configuration. */
export const buildInstallationIso = (
  request: InstallationIsoRequest,
  tools: BuildTools,
): Promise<InstallationIsoReport> =>
  buildIso(request, tools, {
    prepare: prepareInstallationIso,
    describe: describeInstallationIso,
    pour: async ({ lanes }, { base, embedded }) => ({
      lanes,
      base: await fileOf(base),
      blobs: (embedded?.plan ?? NO_IMAGES).blobs,
      mode: 0o600, // the pull secret is on it
    }),
  });

/** Decides every byte of the ISO from a configuration: which stage feeds which. */
export async function prepareInstallationIso(
  request: InstallationIsoRequest,
  tools: BuildTools,
): Promise<PreparedInstallationIso> {
  const { config, epoch, saved } = request;
  const { engine } = tools;
  checkInstallation(request); // before anything is fetched
  const seed = describeSeed(config);
  requireLockedInputs(request, tools, Object.fromEntries(flatten(seed, 'seed')));
  const places = await findPlaces(request, tools);
  const release = resolveNamedRelease(request, tools);
  const releases = Promise.all(release ? [release] : []);
  releases.catch(() => undefined); // the stages that wait for the release report its failure
  const embedded = await planEmbedded(request, tools, release);
  const seedNotes = await checkSeed(request, tools);
  const { base, url } = findBase(request, tools, release);
  const differences = engine.run(compareSeed, {
    base: fileOf(base),
    seedVersion: config.seedVersion,
    ...(release && { releaseVersion: release.then(({ version }) => version) }),
  });
  if (request.isStrict === true) refuseDifferences(await differences);
  const made = engine.run(layOutInstallationIso, {
    base: fileOf(base),
    scan: engine.run(scanBase, { base: fileOf(base) }),
    architecture: seed.architecture,
    ignition: new Secret(renderIgnition(request, embedded)),
    ...withoutUndefined({ epoch, places }),
    release: seed,
    ...(embedded && { embedded: { plan: embedded.plan, releases: await releases } }),
  });
  const layout = made.then(({ layout }) => layout);
  const plan = embedded?.plan ?? NO_IMAGES;
  const space = await engine.run(checkIsoSize, {
    layout,
    plan,
    ...roomOf(request),
  });
  const { registriesConf } = tools;
  const contents = digestContents({ plan, catalogs: [], base: await base });
  const tags = tools.tags.list();
  await reportMovedTags(tags, { ...request, workDir: tools.workDir, emit: tools.emit });
  const found = { releases: await releases, plan, catalogs: [], tags, contents };
  const { digest } = await base;
  const locked = { ...found, seed, base: { digest, ...withoutUndefined({ url: await url }) } };
  const lock = makeLock({ product: 'installation-iso', layout: await layout, ...locked }, tools);
  requireLocked(request.lock, lock);
  if (saved) requirePlanned(saved, { contents, base: await base });
  const signatures = describeSignatures(await releases);
  const unlike = [...seedNotes, ...(await differences)];
  const prepared = { base: await base, ...(await made), tags, contents, registriesConf, unlike };
  return { ...prepared, signatures, space, lock, ...(embedded && { embedded }) };
}

/** Compares the seed with the configuration, if the medium carries it: other seeds may be out of reach. */
async function checkSeed(
  { config, embed: { seed, precached } }: InstallationIsoRequest,
  { engine }: BuildTools,
): Promise<readonly string[]> {
  if (!seed && !precached) return [];
  const { seedImage, seedVersion } = config;
  const found = await engine.run(readSeedVersion, { seedImage, arch: architectureOf(config) });
  requireSeedVersion(seedVersion, found);
  return found === '' ? ['the seed image does not tell its version: it may be no seed'] : [];
}

/** @throws ConfigError `installation.unlike-seed` */
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

/**
 * Renders the Ignition config. It holds the pull secret, so no stage stores it and no fingerprint
 * shows it.
 */
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

/**
 * The live ISO to build on: the named one, or the ISO of the release. `url` is present if a stream
 * named it.
 */
type FoundBase = { readonly base: Promise<BaseIso>; readonly url?: Promise<string | undefined> };

function findBase(
  { base, config, lock }: InstallationIsoRequest,
  { engine, tags }: BuildTools,
  release: Promise<Release> | undefined,
): FoundBase {
  const held = heldBy(lock)?.base;
  if (base !== undefined && isStream(base)) {
    const arch = architectureOf(config);
    const asked =
      findLockedStream(base, held) ?? engine.run(readCoreosStream, { stream: base, arch });
    const given = asked.then((given) => requireLockedBase(held, given));
    const url = given.then(({ url, sha256 }) => {
      if ('streamUrl' in base) tags.note(noteOfStream(base.streamUrl), sha256);
      return readUserInfo(new URL(url)) ? undefined : url; // a lock has no secret
    });
    url.catch(() => undefined); // the stage reports the failure
    return { base: engine.run(takeBaseIso, { given }), url };
  }
  if (base !== undefined) {
    return { base: engine.run(takeBaseIso, { given: requireLockedBase(held, base) }) };
  }
  if (release === undefined) throw new Error('a request names a live ISO or a release');
  return { base: engine.run(fetchBaseIso, { release }) };
}

/**
 * Finds the ISO that a stream named in the lock. A stream at an address is not asked if the lock
 * has its answer.
 */
function findLockedStream(
  stream: CoreosStream,
  held: Lock['base'],
): Promise<StreamIso> | undefined {
  if (held?.url === undefined || !('streamUrl' in stream)) return undefined;
  return Promise.resolve({ url: held.url, sha256: held.digest as Digest });
}

/**
 * Checks the base ISO against the lock, before it is fetched.
 * @throws ConfigError `lock.mismatch`
 */
function requireLockedBase<Given extends GivenBaseIso>(held: Lock['base'], given: Given): Given {
  const found = 'sha256' in given ? given.sha256 : undefined;
  if (held && found !== undefined) requireSame('base.digest', held.digest, found);
  return given;
}

const isStream = (base: GivenBaseIso | CoreosStream): base is CoreosStream =>
  'streamFile' in base || 'streamUrl' in base;
