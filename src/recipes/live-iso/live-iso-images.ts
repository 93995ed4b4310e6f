import { findCatalogServer } from '../../openshift/catalog/image/local-catalog.ts';
import { ConfigError } from '../../base/errors.ts';
import type { ApplianceConfig } from '../../config/appliance-config.ts';
import type { SelectedCatalog } from '../../openshift/catalog/selected-catalog.ts';
import type { MirrorPlan } from '../../openshift/mirror/mirror-plan.ts';
import { CONFIGURE, type RegistryImageChoice } from '../../openshift/mirror/registry-image.ts';
import type { Release } from '../../openshift/release/release-payload.ts';
import { isMinorVersion, stripBuild } from '../../openshift/release/version.ts';
import { checkSpace } from '../../stages/check-space.ts';
import { NODE_REGISTRY_PORT, nodeRegistryDomain } from '../../openshift/node/node-registry.ts';
import {
  findWorkspaceRelease,
  type SurveyedWorkspace,
} from '../../openshift/workspace/workspace-set.ts';
import { formatReference, parseReference, type Reference } from '../../registry/reference.ts';
import { surveyWorkspace } from '../../stages/survey-workspace.ts';
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
  /** Present where all images come from a workspace of oc-mirror. */
  readonly workspace?: Promise<SurveyedWorkspace>;
  /** There is room for what is fetched. */
  readonly reserved: Promise<unknown>;
};

/** The release and every image by digest; `reserved` when there is room for them. */
export function selectImages(
  { config, graphUrl, output, saved }: LiveIsoRequest,
  tools: BuildTools,
): LiveIsoImages {
  const { engine } = tools;
  const { allArchitectures, maxSize } = config.build;
  const arch = config.ocpRelease.cpuArchitecture;
  const { version, channel } = config.ocpRelease;
  const workspace = findWorkspace(config, engine);
  const { additionalImages, operators } = workspace ? nameCopies(config) : config;
  const url = findPullspec(config, saved) ?? workspace?.then(findWorkspaceRelease);
  const release = engine
    .run(resolveRelease, {
      ...{ version, channel, arch },
      ...(url !== undefined && { url }),
      ...(graphUrl !== undefined && { graphUrl }),
    })
    .then((release) => (workspace ? requireMinor(version, release) : release));
  const { uri } = config.imageRegistry;
  const registryImage = release.then((release) =>
    selectRegistryImage(
      {
        ...{ release, uri, saved, configure: CONFIGURE, isOffline: workspace !== undefined },
        ...(graphUrl !== undefined && { graphUrl }),
      },
      tools,
    ),
  );
  registryImage.catch(() => undefined); // the stages that wait for it tell
  const catalogs = engine.run(selectOperators, {
    ...{ catalogs: operators, arch, allArchitectures, unchanged: workspace !== undefined },
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
    ...(workspace && { workspace }),
  });
  const reserved = engine.run(checkSpace, {
    ...{ plan, output },
    ...(maxSize !== undefined && { maxSize }),
  });
  return { release, registryImage, catalogs, plan, reserved, ...(workspace && { workspace }) };
}

function findWorkspace(
  { mirrorPath: directory, enableInteractiveFlow }: ApplianceConfig,
  engine: BuildTools['engine'],
): Promise<SurveyedWorkspace> | undefined {
  if (directory === undefined) return undefined;
  const registry = `${nodeRegistryDomain(enableInteractiveFlow)}:${NODE_REGISTRY_PORT}`;
  const workspace = engine.run(surveyWorkspace, { directory, registry });
  workspace.catch(() => undefined); // the stages that wait for it tell
  return workspace;
}

/** Images by the names of their copies in the mirror, where the configuration gives them others. */
function nameCopies({
  additionalImages,
  operators,
}: ApplianceConfig): Pick<ApplianceConfig, 'additionalImages' | 'operators'> {
  return {
    additionalImages: additionalImages.map(({ name, targetRepo, targetTag }) => ({
      name: nameCopy(name, targetRepo, targetTag),
    })),
    operators: operators.map(({ targetCatalog, targetTag, ...operator }) => ({
      ...operator,
      catalog: nameCopy(operator.catalog, targetCatalog, targetTag),
    })),
  };
}

function nameCopy(name: string, repository?: string, tag?: string): string {
  if (repository === undefined && tag === undefined) return name;
  const { digest, ...reference } = parseReference(name);
  return formatReference({
    ...reference,
    ...(repository !== undefined && { repository }),
    ...(tag === undefined ? digest !== undefined && { digest } : { tag }),
  });
}

/** Out of a graph, `X.Y` is what was asked for; a mirror has what it has. */
function requireMinor(wanted: string, release: Release): Release {
  const { version } = release;
  if (!isMinorVersion(wanted) || version.startsWith(`${wanted}.`)) return release;
  throw new ConfigError(
    'release.version-mismatch',
    `the mirror has release ${version}, but the configuration wants ${wanted}`,
    { expected: wanted, found: version, hint: 'correct ocpRelease.version' },
  );
}

type PayloadRequest = Pick<LiveIsoRequest, 'config' | 'graphUrl' | 'saved'>;

/** The release that the configuration names, or that a saved plan found for it. */
export function findRelease(
  { config, graphUrl, saved }: PayloadRequest,
  { engine }: BuildTools,
): Promise<Release> {
  const { version, channel, cpuArchitecture: arch } = config.ocpRelease;
  const url = findPullspec(config, saved);
  return engine.run(resolveRelease, {
    ...{ version, channel, arch },
    ...(url !== undefined && { url }),
    ...(graphUrl !== undefined && { graphUrl }),
  });
}

/** Operators and images of the configuration, with the releases that are carried beside them. */
export function selectPayload(
  { config }: PayloadRequest,
  { engine }: BuildTools,
  carried: {
    readonly release: Promise<Release>;
    /** Releases that an upgrade passes on its way. */
    readonly passed?: Promise<readonly Release[]>;
    /** Absent on media that are served by what is on the hosts. */
    readonly registryImage?: Promise<Reference>;
  },
): Pick<LiveIsoImages, 'catalogs' | 'plan'> {
  const { additionalImages, operators, build } = config;
  const { allArchitectures } = build;
  const arch = config.ocpRelease.cpuArchitecture;
  const catalogs = engine.run(selectOperators, {
    ...{ catalogs: operators, arch, allArchitectures },
    ...(operators.some(({ local }) => local?.kind === 'directory') && {
      server: carried.release.then(findCatalogServer),
    }),
  });
  const plan = engine.run(planMirror, {
    ...{ ...carried, catalogs, additionalImages, allArchitectures, arch },
    blockedImages: config.blockedImages.map(({ name }) => name),
    includeSignatures: true,
    noSignaturesFrom: config.disableSigstoreRegistries,
  });
  return { catalogs, plan };
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
