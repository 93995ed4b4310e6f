import { ConfigError, IntegrityError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/members.ts';
import { Secret } from '../../config/secret/secret.ts';
import { formatValidIgnition } from '../../ignition/check.ts';
import { withLock } from '../../base/disk/lock.ts';
import { diskOf, lockPathOf } from '../../media/object/object-place.ts';
import { renderInstallationIgnition } from '../../openshift/installation/installation-ignition.ts';
import {
  describeServer,
  planLocalMirrors,
  type LocalRegistry,
} from '../../openshift/installation/installation-registries-conf.ts';
import { mergeMirrorPlan } from '../../openshift/mirror/mirror-plan.ts';
import { checkSize } from '../../stages/lay-out/check-size.ts';
import { layOutInstallationIso } from '../../stages/lay-out/lay-out-installation-iso.ts';
import { scanBase } from '../../stages/system/scan-base.ts';
import type { BuildTools } from '../build-tools.ts';
import { pourAndSeal } from '../pour-and-seal.ts';
import { describeSignatures } from '../verified-release.ts';
import { fileOf } from '../../base/disk/file-input.ts';
import { reportMovedTags } from '../moved-tags.ts';
import { digestContents, requirePlanned } from '../saved-plan.ts';
import { architectureOf, planEmbedded, resolveNamedRelease } from './installation-iso-images.ts';
import type { EmbeddedImages, InstallationIsoRequest } from './installation-iso-request.ts';
import {
  describeInstallationIso,
  type InstallationIsoReport,
  type PreparedInstallationIso,
} from './installation-iso-summary.ts';
import type { BaseIso, GivenBaseIso } from '../../openshift/files/given-iso.ts';
import type { Release } from '../../openshift/release/release-payload.ts';
import { fetchBaseIso } from '../../stages/system/fetch-base-iso.ts';
import { readCoreosStream, type CoreosStream } from '../../stages/system/read-coreos-stream.ts';
import { takeBaseIso } from '../../stages/system/take-base-iso.ts';

/** From a configuration to a sealed ISO. Two builds of one output exclude each other. */
export async function buildInstallationIso(
  request: InstallationIsoRequest,
  tools: BuildTools,
): Promise<InstallationIsoReport> {
  const { lanes } = request;
  return withLock(lockPathOf(request), async () => {
    const prepared = await prepareInstallationIso(request, tools);
    const report = describeInstallationIso(request, prepared);
    const { base, layout, embedded } = prepared;
    return await pourAndSeal(request, tools, {
      layout,
      report,
      lanes,
      base: await fileOf(base),
      blobs: (embedded?.plan ?? NO_IMAGES).blobs,
      mode: 0o600, // the pull secret is on it
    });
  });
}

/** From a configuration to every byte of the ISO: what feeds what. */
export async function prepareInstallationIso(
  request: InstallationIsoRequest,
  tools: BuildTools,
): Promise<PreparedInstallationIso> {
  const { config, epoch, device, saved } = request;
  const { engine } = tools;
  checkInstallation(request); // before anything is fetched
  const places = await tools.takeOver();
  const release = resolveNamedRelease(request, tools);
  const releases = Promise.all(release ? [release] : []);
  releases.catch(() => undefined); // what waits for the release tells
  const embedded = await planEmbedded(request, tools, release);
  const base = findBase(request, tools, release);
  const made = engine.run(layOutInstallationIso, {
    base: fileOf(base),
    scan: engine.run(scanBase, { base: fileOf(base) }),
    architecture: architectureOf(config),
    ignition: new Secret(renderIgnition(request, embedded)),
    ...withoutUndefined({ epoch, places }),
    ...(embedded && {
      embedded: { plan: embedded.plan, release: describeSeed(config), releases: await releases },
    }),
  });
  const layout = made.then(({ layout }) => layout);
  const space = await engine.run(checkSize, {
    layout,
    ...diskOf(request),
    plan: embedded?.plan ?? NO_IMAGES,
    ...withoutUndefined({ device }),
  });
  const { registriesConf } = tools;
  const plan = embedded?.plan ?? NO_IMAGES;
  const contents = digestContents({ plan, catalogs: [], base: await base });
  if (saved) requirePlanned(saved, { contents, base: await base });
  const tags = tools.tags.list();
  await reportMovedTags(tags, { ...request, workDir: tools.workDir, emit: tools.emit });
  const signatures = describeSignatures(await releases);
  const found = { tags, contents, registriesConf, signatures, space };
  const prepared = { base: await base, ...(await made), ...found };
  return { ...prepared, ...(embedded && { embedded }) };
}

/** What the index of the medium says that it installs. */
const describeSeed = (config: InstallationIsoRequest['config']) => ({
  version: config.seedVersion,
  reference: config.seedImage,
  architecture: architectureOf(config),
});

const NO_IMAGES = mergeMirrorPlan({ images: [], blocked: [] });

type Configured = Pick<InstallationIsoRequest, 'config' | 'postScript'>;

/**
 * Whether the live system takes what the configuration says.
 *
 * @throws ConfigError `installation.override`
 */
export function checkInstallation(configured: Configured): void {
  renderIgnition(configured);
}

/** It holds the pull secret: no stage keeps it, no fingerprint shows it. */
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
      'ignitionConfigOverride does not go with what installs',
      { cause, hint: 'leave out what it has at the paths of the ISO and above them' },
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

/** The live ISO to build on: the one that is named, or that of the release. */
function findBase(
  { base, config }: InstallationIsoRequest,
  { engine }: BuildTools,
  release: Promise<Release> | undefined,
): Promise<BaseIso> {
  const arch = architectureOf(config);
  if (base !== undefined) {
    const given = isStream(base) ? engine.run(readCoreosStream, { stream: base, arch }) : base;
    return engine.run(takeBaseIso, { given });
  }
  if (release === undefined) throw new Error('a request names a live ISO or a release');
  return engine.run(fetchBaseIso, { release });
}

const isStream = (base: GivenBaseIso | CoreosStream): base is CoreosStream =>
  'streamFile' in base || 'streamUrl' in base;
