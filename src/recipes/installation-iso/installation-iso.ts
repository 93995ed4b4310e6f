import { ConfigError, IntegrityError } from '../../base/errors.ts';
import { formatValidIgnition } from '../../ignition/format-valid.ts';
import { lockOutput } from '../../iso/pour/lock.ts';
import { renderInstallationIgnition } from '../../openshift/image-based/installation/installation-ignition.ts';
import {
  describeServer,
  planLocalMirrors,
  type LocalRegistry,
} from '../../openshift/image-based/installation/installation-registry.ts';
import { mergeMirrorPlan } from '../../openshift/mirror/mirror-plan.ts';
import { layOutInstallationIso } from '../../stages/lay-out-installation-iso.ts';
import { createExtentOpener } from '../../stages/open-extents.ts';
import { readCached } from '../../stages/read-cached.ts';
import type { BuildTools } from '../build-tools.ts';
import { prepareBase } from './installation-iso-base.ts';
import { architectureOf, planEmbedded, resolveNamedRelease } from './installation-iso-images.ts';
import type { EmbeddedImages, InstallationIsoRequest } from './installation-iso-request.ts';
import {
  sealInstallationIso,
  type InstallationIsoReport,
  type PreparedInstallationIso,
} from './installation-iso-summary.ts';
import { pourAndSeal } from '../pour-and-seal.ts';
import { surveySpace } from '../live-iso/space.ts';

/** From a configuration to a sealed ISO. Two builds of one output exclude each other. */
export async function buildInstallationIso(
  request: InstallationIsoRequest,
  tools: BuildTools,
): Promise<InstallationIsoReport> {
  const unlock = await lockOutput(`${request.output}.lock`);
  try {
    const prepared = await prepareInstallationIso(request, tools);
    return await pourInstallationIso(prepared, request, tools);
  } finally {
    await unlock();
  }
}

/** From a configuration to every byte of the ISO: what feeds what. */
async function prepareInstallationIso(
  request: InstallationIsoRequest,
  tools: BuildTools,
): Promise<PreparedInstallationIso> {
  const { config, epoch } = request;
  renderIgnition(request); // whatever is wrong with the override is told before anything is fetched
  const release = resolveNamedRelease(request, tools);
  const embedded = await planEmbedded(request, tools, release);
  const { base, scan } = prepareBase(request, tools, release);
  const { layout, embedArea } = await tools.engine.stage({
    name: 'lay out ISO',
    inputs: { base, scan, architecture: architectureOf(config) },
    run: (parts, { signal }) =>
      layOutInstallationIso({
        ...parts,
        ignition: renderIgnition(request, embedded),
        ...(epoch !== undefined && { epoch }),
        ...(embedded && {
          embedded: {
            plan: embedded.plan,
            release: {
              version: config.seedVersion,
              reference: config.seedImage,
              architecture: architectureOf(config),
            },
            readManifest: (manifest) => readCached(tools.cache, manifest, signal),
          },
        }),
      }),
  });
  await surveySpace({ plan: embedded?.plan ?? NO_IMAGES, layout }, request, tools.cache);
  return { base: await base, layout, embedArea, ...(embedded && { embedded }) };
}

const NO_IMAGES = mergeMirrorPlan({ images: [], blocked: [] });

/** It holds the pull secret: no stage keeps it, no fingerprint shows it. */
function renderIgnition(
  { config, postScript }: InstallationIsoRequest,
  embedded?: EmbeddedImages,
): string {
  const override = config.ignitionConfigOverride?.reveal();
  const localRegistry = embedded && describeRegistry(embedded, config.releaseRegistry);
  const ignition = renderInstallationIgnition({
    settings: config,
    pullSecret: config.pullSecret.reveal(),
    ...(override !== undefined && { ignitionConfigOverride: override }),
    ...(postScript && { postScript }),
    ...(localRegistry && { localRegistry }),
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

function pourInstallationIso(
  prepared: PreparedInstallationIso,
  request: InstallationIsoRequest,
  tools: BuildTools,
): Promise<InstallationIsoReport> {
  const { base, layout, embedded } = prepared;
  const { cache, client } = tools;
  const { output, lanes } = request;
  return pourAndSeal(tools.engine, {
    pour: {
      ...{ layout, output, lanes },
      mode: 0o600, // the pull secret is on it
      openExtent: createExtentOpener({
        ...{ base: base.path, cache, client },
        blobs: (embedded?.plan ?? NO_IMAGES).blobs,
      }),
    },
    seal: (poured, milliseconds) =>
      sealInstallationIso({ prepared, poured, milliseconds }, request, tools),
  });
}
