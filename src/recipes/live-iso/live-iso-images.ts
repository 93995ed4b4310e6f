import { ConfigError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import type { ApplianceConfig } from '../../config/appliance-config.ts';
import type { SelectedCatalog } from '../../openshift/catalog/selected.ts';
import type { MirrorPlan } from '../../openshift/mirror/plan.ts';
import { CONFIGURE, type RegistryImageChoice } from '../../openshift/mirror/server.ts';
import type { Release } from '../../openshift/release/release.ts';
import { isMinorVersion } from '../../openshift/release/version.ts';
import type { ImagePolicyCheck } from '../../stages/content/check-image-policy.ts';
import { diskOf } from '../../outputs/output.ts';
import { checkSpace } from '../../stages/lay-out/check-space.ts';
import { NODE_REGISTRY_PORT, nodeRegistryDomain } from '../../openshift/node/registry.ts';
import type { SurveyedWorkspace } from '../../openshift/workspace/set.ts';
import { formatReference, parseReference } from '../../registry/reference.ts';
import { surveyWorkspace } from '../../stages/content/survey-workspace.ts';
import type { BuildTools } from '../build-tools.ts';
import { findRelease, selectPayload, selectRegistryImage } from '../select-payload.ts';
import type { LiveIsoRequest } from './live-iso-request.ts';

/** What a medium carries, under way. */
export type LiveIsoImages = {
  readonly release: Promise<Release>;
  readonly registryImage: Promise<RegistryImageChoice>;
  readonly catalogs: Promise<readonly SelectedCatalog[]>;
  readonly plan: Promise<MirrorPlan>;
  readonly imagePolicy: Promise<ImagePolicyCheck>;
  /** Present where all images come from a workspace of oc-mirror. */
  readonly workspace?: Promise<SurveyedWorkspace>;
  /** There is room for what is fetched. */
  readonly reserved: Promise<unknown>;
};

/** The release and every image by digest; `reserved` when there is room for them. */
export function selectImages(request: LiveIsoRequest, tools: BuildTools): LiveIsoImages {
  const { config, graphUrl, device, saved, signatures, disableImagePolicy, isThere } = request;
  const { maxSize } = config.build;
  const workspace = findWorkspace(config, tools.engine);
  const release = workspace
    ? findRelease(request, tools, workspace).then((release) =>
        requireMinor(config.ocpRelease.version, release),
      )
    : findRelease(request, tools);
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
  registryImage.catch(() => undefined); // the stages that wait for it tell
  const selected = selectPayload(workspace ? nameCopies(config) : config, tools, {
    release,
    registryImage: registryImage.then(({ reference }) => reference),
    ...withoutUndefined({ workspace, disableImagePolicy }),
  });
  const { plan } = selected;
  const reserved = tools.engine.run(checkSpace, {
    plan,
    ...diskOf(request),
    ...withoutUndefined({ maxSize, device, isThere }),
  });
  return { release, registryImage, ...selected, reserved, ...(workspace && { workspace }) };
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

/** Out of a graph, `X.Y` is what was asked for; a mirror has what it has. */
function requireMinor(wanted: string, release: Release): Release {
  const { version } = release;
  if (!isMinorVersion(wanted) || version.startsWith(`${wanted}.`)) return release;
  throw new ConfigError(
    'release.version-mismatch',
    `the mirror has release ${version}, but the configuration asks for ${wanted}`,
    { expected: wanted, found: version, hint: 'correct ocpRelease.version' },
  );
}
