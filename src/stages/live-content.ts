import { ConfigError } from '../base/errors.ts';
import { withoutUndefined } from '../base/lists.ts';
import type { ApplianceConfig } from '../config/appliance-config.ts';
import { CONFIGURE } from '../openshift/mirror/server.ts';
import { NODE_REGISTRY_PORT, nodeRegistryDomain } from '../openshift/node/registry.ts';
import type { Release } from '../openshift/release/release.ts';
import { isMinorVersion } from '../openshift/release/version.ts';
import type { SurveyedWorkspace } from '../openshift/workspace/set.ts';
import { formatReference, parseReference } from '../registry/index.ts';
import { surveyWorkspace } from './1-resolve/survey-workspace.ts';
import {
  type ClusterContent,
  resolvePayload,
  type LiveIsoImages,
  selectPayload,
  selectRegistryImage,
} from './payload.ts';
import type { LiveIsoRequest } from './request.ts';
import type { BuildTools } from './tools.ts';

/*
 * The content of a live ISO that is selected from registries, or from a workspace of oc-mirror. Views
 * take as much of it as they show.
 */

/** Selects the release, the registry server and every image by digest. */
export async function selectImages(
  request: LiveIsoRequest,
  tools: BuildTools,
): Promise<LiveIsoImages> {
  const { config, graphUrl, signatures } = request;
  const found = await findContent(request, tools);
  const { release, workspace } = found;
  const { uri } = config.imageRegistry;
  const registryImage = selectRegistryImage(
    {
      release,
      uri,
      configure: CONFIGURE,
      isOffline: workspace !== undefined,
      signatures,
      ...withoutUndefined({ graphUrl }),
    },
    tools,
  );
  const selected = selectCarried(request, tools, { ...found, registryImage });
  const [payload, server] = await Promise.all([selected, registryImage]);
  return { ...found, ...payload, registryImage: server };
}

/** The content that a cluster gets: a medium has the registry server, too. */
export async function selectContent(
  request: LiveIsoRequest,
  tools: BuildTools,
): Promise<ClusterContent> {
  const found = await findContent(request, tools);
  return { ...found, ...(await selectCarried(request, tools, found)) };
}

type FoundContent = Pick<ClusterContent, 'release' | 'workspace'>;

async function findContent(request: LiveIsoRequest, tools: BuildTools): Promise<FoundContent> {
  const { config } = request;
  const workspace = await findWorkspace(config, tools.engine);
  const release = await resolvePayload(request, tools, workspace);
  if (!workspace) return { release };
  requireMinor(config.ocpRelease.version, release);
  return { release, workspace };
}

/** Rejects instead of throwing: the registry server is already being selected beside it. */
async function selectCarried(
  { config }: LiveIsoRequest,
  tools: BuildTools,
  carried: Parameters<typeof selectPayload>[2],
): ReturnType<typeof selectPayload> {
  return selectPayload(carried.workspace ? nameCopies(config) : config, tools, carried);
}

async function findWorkspace(
  { mirrorPath: directory, enableInteractiveFlow }: ApplianceConfig,
  engine: BuildTools['engine'],
): Promise<SurveyedWorkspace | undefined> {
  if (directory === undefined) return undefined;
  const registry = `${nodeRegistryDomain(enableInteractiveFlow)}:${NODE_REGISTRY_PORT}`;
  return engine.run(surveyWorkspace, { directory, registry });
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

/** A graph answers with the `X.Y` that was asked for; a mirror has only what it has. */
function requireMinor(wanted: string, { version }: Release): void {
  if (!isMinorVersion(wanted) || version.startsWith(`${wanted}.`)) return;
  throw new ConfigError(
    'release.version-mismatch',
    `the mirror has release ${version}, but the configuration asks for ${wanted}`,
    { expected: wanted, found: version, hint: 'correct ocpRelease.version' },
  );
}
