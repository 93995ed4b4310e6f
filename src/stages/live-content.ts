import { ConfigError } from '../base/errors.ts';
import { withoutUndefined } from '../base/lists.ts';
import type { ApplianceConfig } from '../config/appliance-config.ts';
import type { AbsentImage } from '../openshift/mirror/closure.ts';
import { CONFIGURE } from '../openshift/mirror/server.ts';
import { NODE_REGISTRY_PORT, nodeRegistryDomain } from '../openshift/node/registry.ts';
import type { Release } from '../openshift/release/release.ts';
import { isMinorVersion } from '../openshift/release/version.ts';
import type { SurveyedWorkspace } from '../openshift/workspace/set.ts';
import { roomOf } from '../outputs/place.ts';
import { formatReference, parseReference } from '../registry/index.ts';
import { surveyWorkspace } from './1-resolve/survey-workspace.ts';
import { checkComplete } from './2-select/check-complete.ts';
import { checkSpace } from './2-select/check-space.ts';
import {
  type ClusterContent,
  resolvePayload,
  judgeImages,
  type LiveIsoImages,
  selectPayload,
  selectRegistryImage,
} from './payload.ts';
import type { LiveIsoRequest } from './request.ts';
import type { BuildTools } from './tools.ts';

/*
 * The content of a live ISO that is still being selected: from registries, or from a workspace of
 * oc-mirror. Views take as much of it as they show.
 */

/**
 * Selects the release and every image by digest; `reserved` resolves when there is room for them.
 */
export function selectImages(request: LiveIsoRequest, tools: BuildTools): LiveIsoImages {
  const { config, disableImagePolicy } = request;
  const { maxSize } = config.build;
  const images = selectPlanned(request, tools);
  const complete = proveComplete(request, tools, images);
  const input = { plan: images.plan, ...roomOf(request), ...withoutUndefined({ maxSize }) };
  return {
    ...images,
    reserved: tools.engine.run(checkSpace, input, complete),
    imagePolicy: judgeImages(images, tools, disableImagePolicy),
    ...(complete && { complete }),
  };
}

/** The content of a live ISO as it is planned, without the checks of a medium. */
export function selectPlanned(
  request: LiveIsoRequest,
  tools: BuildTools,
): Omit<LiveIsoImages, 'reserved' | 'imagePolicy' | 'complete'> {
  const { config, graphUrl, saved, signatures } = request;
  const found = findContent(request, tools);
  const { release, workspace } = found;
  const { uri } = config.imageRegistry;
  const registryImage = release.then((release) =>
    selectRegistryImage(
      {
        release,
        uri,
        saved,
        configure: CONFIGURE,
        isOffline: workspace !== undefined,
        signatures,
        ...withoutUndefined({ graphUrl }),
      },
      tools,
    ),
  );
  registryImage.catch(() => undefined); // the stages that wait for it report its failure
  const server = registryImage.then(({ reference }) => reference);
  return {
    ...found,
    ...selectCarried(request, tools, { ...found, registryImage: server }),
    registryImage,
  };
}

/** The content that a cluster gets: a medium has the registry server, too. */
export function selectContent(request: LiveIsoRequest, tools: BuildTools): ClusterContent {
  const found = findContent(request, tools);
  return { ...found, ...selectCarried(request, tools, found) };
}

type FoundContent = Pick<ClusterContent, 'release' | 'workspace'>;

function findContent(request: LiveIsoRequest, tools: BuildTools): FoundContent {
  const { config } = request;
  const workspace = findWorkspace(config, tools.engine);
  if (!workspace) return { release: resolvePayload(request, tools) };
  const release = resolvePayload(request, tools, workspace).then((release) =>
    requireMinor(config.ocpRelease.version, release),
  );
  return { release, workspace };
}

const selectCarried = (
  { config }: LiveIsoRequest,
  tools: BuildTools,
  carried: Parameters<typeof selectPayload>[2],
): ReturnType<typeof selectPayload> =>
  selectPayload(carried.workspace ? nameCopies(config) : config, tools, carried);

function findWorkspace(
  { mirrorPath: directory, enableInteractiveFlow }: ApplianceConfig,
  engine: BuildTools['engine'],
): Promise<SurveyedWorkspace> | undefined {
  if (directory === undefined) return undefined;
  const registry = `${nodeRegistryDomain(enableInteractiveFlow)}:${NODE_REGISTRY_PORT}`;
  const workspace = engine.run(surveyWorkspace, { directory, registry });
  workspace.catch(() => undefined); // the stages that wait for it report its failure
  return workspace;
}

/** A workspace may be the rest of a partial mirror; registries have what the plan has read. */
function proveComplete(
  { allowIncomplete }: LiveIsoRequest,
  { engine }: BuildTools,
  { release, plan, workspace }: ClusterContent,
): Promise<readonly AbsentImage[]> | undefined {
  if (workspace === undefined) return undefined;
  const arch = release.then(({ arch }) => arch);
  const complete = engine.run(checkComplete, { plan, workspace, arch, allowIncomplete });
  complete.catch(() => undefined); // the stages that wait for it report its failure
  return complete;
}

/** Renames images to their copies in the mirror, if the configuration gives them other names. */
function nameCopies(config: ApplianceConfig): ApplianceConfig {
  const { additionalImages, operators } = config;
  return {
    ...config,
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
    ...withoutUndefined({ repository }),
    ...(tag === undefined ? digest !== undefined && { digest } : { tag }),
  });
}

/**
 * Checks the minor version. A graph answers with the `X.Y` that was asked for; a mirror has only
 * what it has.
 */
function requireMinor(wanted: string, release: Release): Release {
  const { version } = release;
  if (!isMinorVersion(wanted) || version.startsWith(`${wanted}.`)) return release;
  throw new ConfigError(
    'release.version-mismatch',
    `the mirror has release ${version}, but the configuration asks for ${wanted}`,
    { expected: wanted, found: version, hint: 'correct ocpRelease.version' },
  );
}
