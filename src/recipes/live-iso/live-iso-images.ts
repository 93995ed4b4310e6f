import { findCatalogServer } from '../../openshift/catalog/image/local-catalog.ts';
import { ConfigError } from '../../base/errors.ts';
import type { SelectedCatalog } from '../../openshift/catalog/selected-catalog.ts';
import type { MirrorPlan } from '../../openshift/mirror/mirror-plan.ts';
import { CONFIGURE, type RegistryImageChoice } from '../../openshift/mirror/registry-image.ts';
import type { Release } from '../../openshift/release/release-payload.ts';
import { isMinorVersion, stripBuild } from '../../openshift/release/version.ts';
import { checkSpace } from '../../stages/check-space.ts';
import { planMirror } from '../../stages/plan-mirror.ts';
import { resolveRelease } from '../../stages/resolve-release.ts';
import { selectOperators } from '../../stages/select-operators.ts';
import type { BuildTools } from '../build-tools.ts';
import type { SavedPlan } from '../saved-plan.ts';
import { selectRegistryImage } from '../select-registry-image.ts';
import type { LiveIsoRequest } from './live-iso-request.ts';

/** What a medium carries, under way. */
export type LiveIsoImages = {
  readonly release: Promise<Release>;
  readonly registryImage: Promise<RegistryImageChoice>;
  readonly catalogs: Promise<readonly SelectedCatalog[]>;
  readonly plan: Promise<MirrorPlan>;
  /** There is room for what is fetched. */
  readonly reserved: Promise<unknown>;
};

/** The release and every image by digest; `reserved` when there is room for them. */
export function selectImages(
  { config, graphUrl, output, saved }: LiveIsoRequest,
  tools: BuildTools,
): LiveIsoImages {
  const { engine } = tools;
  const { additionalImages, operators, build } = config;
  const { allArchitectures, maxSize } = build;
  const arch = config.ocpRelease.cpuArchitecture;
  const { version, channel } = config.ocpRelease;
  const url = findPullspec(config, saved);
  const release = engine.run(resolveRelease, {
    ...{ version, channel, arch },
    ...(url !== undefined && { url }),
    ...(graphUrl !== undefined && { graphUrl }),
  });
  const { uri } = config.imageRegistry;
  const registryImage = release.then((release) =>
    selectRegistryImage(
      { release, uri, saved, configure: CONFIGURE, ...(graphUrl !== undefined && { graphUrl }) },
      tools,
    ),
  );
  registryImage.catch(() => undefined); // the stages that wait for it tell
  const catalogs = engine.run(selectOperators, {
    ...{ catalogs: operators, arch, allArchitectures },
    ...(operators.some(({ local }) => local?.kind === 'directory') && {
      server: release.then(findCatalogServer),
    }),
  });
  const plan = engine.run(planMirror, {
    ...{ release, catalogs, additionalImages, allArchitectures, arch },
    blockedImages: config.blockedImages.map(({ name }) => name),
    includeSignatures: true,
    noSignaturesFrom: config.disableSigstoreRegistries,
    registryImage: registryImage.then(({ reference }) => reference),
  });
  const reserved = engine.run(checkSpace, {
    ...{ plan, output },
    ...(maxSize !== undefined && { maxSize }),
  });
  return { release, registryImage, catalogs, plan, reserved };
}

/** What the graph answered when it was planned is not asked again. */
function findPullspec(
  { ocpRelease: { url, version } }: LiveIsoRequest['config'],
  saved: SavedPlan | undefined,
): string | undefined {
  const planned = saved?.release;
  if (!planned || (url !== undefined && url !== '')) return url;
  const isPlanned = isMinorVersion(version)
    ? planned.version.startsWith(`${version}.`)
    : stripBuild(planned.version) === stripBuild(version);
  if (isPlanned) return planned.reference;
  throw new ConfigError(
    'plan.differs',
    `the plan is for release ${planned.version}, but the configuration wants ${version}`,
    { expected: planned.version, found: version, hint: 'plan again' },
  );
}
