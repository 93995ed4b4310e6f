import type { SelectedCatalog } from '../openshift/catalog/selected.ts';
import { findCatalogServer } from '../openshift/catalog/selected.ts';
import { ConfigError } from '../base/errors.ts';
import { withoutUndefined } from '../base/lists.ts';
import type { ApplianceConfig } from '../config/appliance-config.ts';
import { noteOfRelease } from '../openshift/release/upgrade-path.ts';
import type { MirrorPlan } from '../openshift/mirror/plan.ts';
import { type Release, digestOfRelease } from '../openshift/release/release.ts';
import { isMinorVersion, stripBuild } from '../openshift/release/version.ts';
import { findWorkspaceRelease, type SurveyedWorkspace } from '../openshift/workspace/set.ts';
import { type Reference, parseReference } from '../registry/reference.ts';
import { checkImagePolicy, type ImagePolicyCheck } from '../stages/content/check-image-policy.ts';
import { planMirror } from '../stages/content/plan-mirror.ts';
import { selectOperators } from '../stages/content/select-operators.ts';
import type { SignatureGate } from '../stages/content/verify-release.ts';
import type { BuildTools } from './build-tools.ts';
import type { SavedPlan } from './saved-plan.ts';
import { mismatch, nameField } from './lock/mismatch.ts';
import { resolveVerified } from './verified-release.ts';
import {
  chooseRegistryImage,
  describeNewerRelease,
  getRegistryComponent,
  type Configure,
  type RegistryImageChoice,
} from '../openshift/mirror/server.ts';
import { inspectRegistryImage } from '../stages/content/inspect-registry-image.ts';

type PayloadRequest = {
  readonly config: ApplianceConfig;
  readonly graphUrl?: string;
  readonly saved?: SavedPlan;
  readonly signatures: SignatureGate;
};

/**
 * The release that the configuration names, or that a saved plan found for it, verified.
 *
 * @param workspace names a release and has its signature, where all images come from it
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

/** What is carried beside the operators and images of the configuration. */
type Carried = {
  readonly release: Promise<Release>;
  /** Releases that an upgrade passes on its way. */
  readonly passed?: Promise<readonly Release[]>;
  /** Absent on media that are served by what is on the hosts. */
  readonly registryImage?: Promise<Reference>;
  /** Where all images come from, when it is one of oc-mirror. */
  readonly workspace?: Promise<SurveyedWorkspace>;
  /** Of live ISOs; see `disablesImagePolicy`. */
  readonly disableImagePolicy?: boolean;
};

/** Operators and images of the configuration, with what is carried beside them. */
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

/** What the graph answered when it was planned is not asked again. */
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
    /** As it is configured, where it is. */
    readonly uri?: string;
    /** How a user would configure it. */
    readonly configure: Configure;
    readonly graphUrl?: string;
    /** For the release that it is taken from, where that is another one. */
    readonly signatures: SignatureGate;
    readonly saved?: SavedPlan | undefined;
    /** Whether no other release can be asked for. */
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
