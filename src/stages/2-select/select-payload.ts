import { ConfigError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import type { ApplianceConfig } from '../../config/appliance-config.ts';
import { type SelectedCatalog, findCatalogServer } from '../../openshift/catalog/selected.ts';
import type { MirrorPlan } from '../../openshift/mirror/plan.ts';
import {
  chooseRegistryImage,
  describeNewerRelease,
  getRegistryComponent,
  type Configure,
  type RegistryImageChoice,
  CONFIGURE,
} from '../../openshift/mirror/server.ts';
import { NODE_REGISTRY_PORT, nodeRegistryDomain } from '../../openshift/node/registry.ts';
import { type Release, digestOfRelease } from '../../openshift/release/release.ts';
import { noteOfRelease } from '../../openshift/release/upgrade-path.ts';
import { isMinorVersion, stripBuild } from '../../openshift/release/version.ts';
import { findWorkspaceRelease, type SurveyedWorkspace } from '../../openshift/workspace/set.ts';
import { diskOf } from '../../outputs/output.ts';
import { formatReference, parseReference, type Reference } from '../../registry/index.ts';
import { inspectRegistryImage } from '../1-resolve/inspect-registry-image.ts';
import { surveyWorkspace } from '../1-resolve/survey-workspace.ts';
import { type SignatureGate, resolveVerified } from '../1-resolve/verify-release.ts';
import type { LiveIsoRequest } from '../request.ts';
import { mismatch, nameField } from '../resolved/record.ts';
import type { SavedPlan } from '../resolved/use.ts';
import type { BuildTools } from '../tools.ts';
import { checkImagePolicy, type ImagePolicyCheck } from './check-image-policy.ts';
import { checkSpace } from './check-space.ts';
import { planMirror } from './plan-mirror.ts';
import { selectOperators } from './select-operators.ts';

/*
 * The content of live and upgrade media: the release, the registry server, operators and images,
 * by digest.
 */

type PayloadRequest = {
  readonly config: ApplianceConfig;
  readonly graphUrl?: string;
  readonly saved?: SavedPlan;
  readonly signatures: SignatureGate;
};

/**
 * The release that the configuration names, or that a saved plan found for it, verified.
 *
 * @param workspace names a release and has its signature, if all images come from it
 */
export function findRelease(
  { config, graphUrl, saved, signatures }: PayloadRequest,
  tools: BuildTools,
  workspace?: Promise<SurveyedWorkspace>,
): Promise<Release> {
  const { version, channel, cpuArchitecture: arch } = config.ocpRelease;
  const url = findPullspec(config, saved) ?? workspace?.then(findWorkspaceRelease);
  return resolveVerified(
    {
      version,
      channel,
      ...withoutUndefined({ arch, url, graphUrl }),
    },
    tools,
    { signatures, ...(workspace && { workspace }) },
  );
}

/** Content that is carried next to the operators and images of the configuration. */
type Carried = {
  readonly release: Promise<Release>;
  /** Releases that an upgrade passes on its way. */
  readonly passed?: Promise<readonly Release[]>;
  /** Absent on media that are served by programs already on the hosts. */
  readonly registryImage?: Promise<Reference>;
  /** The oc-mirror workspace that all images come from, if there is one. */
  readonly workspace?: Promise<SurveyedWorkspace>;
  /** For live ISOs; see `disablesImagePolicy`. */
  readonly disableImagePolicy?: boolean;
};

/** Selects operators and images of the configuration, with what is carried next to them. */
export function selectPayload(
  { additionalImages, operators, ...config }: ApplianceConfig,
  { engine }: BuildTools,
  { disableImagePolicy, ...carried }: Carried,
): {
  readonly catalogs: Promise<readonly SelectedCatalog[]>;
  readonly plan: Promise<MirrorPlan>;
  readonly imagePolicy: Promise<ImagePolicyCheck>;
} {
  const { release, passed, workspace } = carried;
  const { allArchitectures } = config.build;
  // Catalogs may be large: none is fetched for a release that is refused.
  const arch = Promise.all([release, passed]).then(
    ([{ arch }]) => config.ocpRelease.cpuArchitecture ?? arch,
  );
  const catalogs = engine.run(selectOperators, {
    catalogs: operators,
    arch,
    allArchitectures,
    unchanged: workspace !== undefined,
    ...(operators.some(({ local }) => local?.kind === 'directory') && {
      server: release.then(findCatalogServer),
    }),
  });
  const plan = engine.run(planMirror, {
    ...carried,
    catalogs,
    additionalImages,
    allArchitectures,
    arch,
    blockedImages: config.blockedImages.map(({ name }) => name),
    includeSignatures: true,
    noSignaturesFrom: config.disableSigstoreRegistries,
  });
  const imagePolicy = engine.run(checkImagePolicy, {
    release,
    plan,
    ...withoutUndefined({ disableImagePolicy }),
  });
  return { catalogs, plan, imagePolicy };
}

/**
 * Finds the pullspec of the release. The graph is not asked again for what it answered when this
 * was planned.
 */
function findPullspec(
  { ocpRelease: { url, version } }: ApplianceConfig,
  saved: SavedPlan | undefined,
): string | undefined {
  const planned = saved?.release;
  if (!planned || (url !== undefined && url !== '')) return url;
  const isPlanned = isMinorVersion(version)
    ? planned.version.startsWith(`${version}.`)
    : stripBuild(planned.version) === stripBuild(version);
  if (isPlanned) return planned.reference;
  if (saved.isLock === true) {
    throw mismatch(nameField('release', 'version'), { expected: planned.version, found: version });
  }
  throw new ConfigError(
    'plan.differs',
    `the plan is for release ${planned.version}, but the configuration asks for ${version}`,
    { expected: planned.version, found: version, hint: 'plan again' },
  );
}

/** The channel that has the newest release with a registry server. */
const CHANNEL = 'stable';

/** The registry server that serves a release on the nodes, by digest. */
export async function selectRegistryImage(
  options: {
    readonly release: Release;
    /** The registry server as it is configured, if it is. */
    readonly uri?: string;
    /** Makes an error tell the user how to configure it. */
    readonly configure: Configure;
    readonly graphUrl?: string;
    /** For the release that the registry server is taken from, if it is another one. */
    readonly signatures: SignatureGate;
    readonly saved?: SavedPlan | undefined;
    /** True if no other release can be asked for. */
    readonly isOffline?: boolean;
  },
  tools: BuildTools,
): Promise<RegistryImageChoice> {
  const { release, configure, graphUrl, saved, signatures } = options;
  const { version, arch } = release;
  const origin = chooseRegistryImage(options);
  if (origin.kind !== 'newer-release') {
    const { kind, reference } = origin;
    const isComponent = kind === 'component';
    return tools.engine.run(inspectRegistryImage, { reference, isComponent, arch, version });
  }
  const { minor } = origin;
  const component = { isComponent: true, arch, version };
  if (saved?.registryImage !== undefined) {
    const reference = parseReference(saved.registryImage);
    return tools.engine.run(inspectRegistryImage, { reference, ...component });
  }
  const wanted = {
    version: minor,
    channel: CHANNEL,
    arch,
    ...withoutUndefined({ graphUrl }),
    otherwise: { message: describeNewerRelease(version, minor), hint: configure },
  };
  const newer = await resolveVerified(wanted, tools, { signatures });
  tools.tags.note(noteOfRelease(minor, CHANNEL), digestOfRelease(newer));
  const reference = getRegistryComponent(newer, configure);
  return tools.engine.run(inspectRegistryImage, { reference, ...component });
}

/** Content of a medium that is still being selected. */
export type LiveIsoImages = {
  readonly release: Promise<Release>;
  readonly registryImage: Promise<RegistryImageChoice>;
  readonly catalogs: Promise<readonly SelectedCatalog[]>;
  readonly plan: Promise<MirrorPlan>;
  readonly imagePolicy: Promise<ImagePolicyCheck>;
  /** Present if all images come from a workspace of oc-mirror. */
  readonly workspace?: Promise<SurveyedWorkspace>;
  /** Resolved when there is room for what is fetched. */
  readonly reserved: Promise<unknown>;
};

/**
 * Selects the release and every image by digest; `reserved` resolves when there is room for them.
 */
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
  registryImage.catch(() => undefined); // the stages that wait for it report its failure
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
  workspace.catch(() => undefined); // the stages that wait for it report its failure
  return workspace;
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
