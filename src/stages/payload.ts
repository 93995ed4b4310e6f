import { ConfigError } from '../base/errors.ts';
import { withoutUndefined } from '../base/lists.ts';
import type { ApplianceConfig } from '../config/appliance-config.ts';
import { findCatalogServer, type SelectedCatalog } from '../openshift/catalog/selected.ts';
import type { AbsentImage } from '../openshift/mirror/closure.ts';
import type { MirrorPlan } from '../openshift/mirror/plan.ts';
import {
  chooseRegistryImage,
  describeNewerRelease,
  getRegistryComponent,
  type Configure,
  type RegistryImageChoice,
} from '../openshift/mirror/server.ts';
import { digestOfRelease, type Release } from '../openshift/release/release.ts';
import { noteOfRelease } from '../openshift/release/upgrade-path.ts';
import { isMinorVersion, stripBuild } from '../openshift/release/version.ts';
import { findWorkspaceRelease, type SurveyedWorkspace } from '../openshift/workspace/set.ts';
import { parseReference, type Reference } from '../registry/index.ts';
import { inspectRegistryImage } from './1-resolve/inspect-registry-image.ts';
import { resolveRelease, type ResolveReleaseInput } from './1-resolve/resolve-release.ts';
import { verifyRelease, type SignatureGate } from './1-resolve/verify-release.ts';
import { checkImagePolicy, type ImagePolicyCheck } from './2-select/check-image-policy.ts';
import { planMirror } from './2-select/plan-mirror.ts';
import { selectOperators } from './2-select/select-operators.ts';
import { mismatch, nameField } from './resolved/record.ts';
import type { SavedPlan } from './resolved/saved-plan.ts';
import type { BuildTools } from './tools.ts';

/*
 * The content that several products share: the release, the registry server, operators and images,
 * by digest.
 */

type PayloadRequest = {
  readonly config: ApplianceConfig;
  readonly graphUrl?: string;
  readonly saved?: SavedPlan;
  readonly signatures: SignatureGate;
};

/** Content that is carried next to the operators and images of the configuration. */
type Carried = {
  readonly release: Promise<Release>;
  /** Releases that an upgrade passes on its way. */
  readonly passed?: Promise<readonly Release[]>;
  /** Absent on media that are served by programs already on the hosts. */
  readonly registryImage?: Promise<Reference>;
  /** The oc-mirror workspace that all images come from, if there is one. */
  readonly workspace?: Promise<SurveyedWorkspace>;
};

/** Operators and images of a configuration that are still being selected. */
type SelectedPayload = {
  readonly catalogs: Promise<readonly SelectedCatalog[]>;
  readonly plan: Promise<MirrorPlan>;
};

/** Content that a cluster gets, still being selected. */
export type ClusterContent = SelectedPayload & {
  readonly release: Promise<Release>;
  /** Present if all images come from a workspace of oc-mirror. */
  readonly workspace?: Promise<SurveyedWorkspace>;
};

/** Content of a live ISO that is still being selected. */
export type LiveIsoImages = ClusterContent & {
  readonly registryImage: Promise<RegistryImageChoice>;
  readonly imagePolicy: Promise<ImagePolicyCheck>;
  /** Images that are missing with the consent of the user; present if there is a workspace. */
  readonly complete?: Promise<readonly AbsentImage[]>;
  /** Resolved when there is room for what is fetched, and a workspace has it. */
  readonly reserved: Promise<unknown>;
};

/**
 * The release that the configuration names, or that a saved plan found for it, verified.
 *
 * @param workspace names a release and has its signature, if all images come from it
 */
export function resolvePayload(
  { config, graphUrl, saved, signatures }: PayloadRequest,
  tools: BuildTools,
  workspace?: Promise<SurveyedWorkspace>,
): Promise<Release> {
  const { version, channel, cpuArchitecture: arch } = config.ocpRelease;
  const url =
    findPullspec(config, saved) ?? workspace?.then((one) => findWorkspaceRelease(one, version));
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

/**
 * Resolves a release, with its signature verified: large files, and files that are executed, are
 * fetched from this release only.
 *
 * @param wanted values, or promises of them
 */
export function resolveVerified(
  wanted: Omit<ResolveReleaseInput, 'url'> & { readonly url?: string | Promise<string> },
  { engine }: BuildTools,
  given: { readonly signatures: SignatureGate; readonly workspace?: Promise<SurveyedWorkspace> },
): Promise<Release> {
  const { signatures, workspace } = given;
  return engine.run(verifyRelease, {
    ...signatures,
    release: engine.run(resolveRelease, wanted),
    ...(workspace && { workspace: workspace.then((found) => found.signatures) }),
  });
}

/** Selects operators and images of the configuration, with what is carried next to them. */
export function selectPayload(
  { additionalImages, operators, ...config }: ApplianceConfig,
  { engine }: BuildTools,
  carried: Carried,
): SelectedPayload {
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
  return { catalogs, plan };
}

/**
 * Finds the images that nodes of a release refuse.
 *
 * @param disableImagePolicy for live ISOs; see `disablesImagePolicy`
 */
export const judgeImages = (
  { release, plan }: Pick<ClusterContent, 'release' | 'plan'>,
  { engine }: BuildTools,
  disableImagePolicy?: boolean,
): Promise<ImagePolicyCheck> =>
  engine.run(checkImagePolicy, { release, plan, ...withoutUndefined({ disableImagePolicy }) });

/** The registry server that serves a release on the nodes, by digest. */
export async function selectRegistryImage(
  options: {
    readonly release: Release;
    /** The registry server as it is configured, if it is. */
    readonly uri?: string;
    /** Hint of errors: how to configure it. */
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
