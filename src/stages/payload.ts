import { ConfigError } from '../base/errors.ts';
import { withoutUndefined } from '../base/lists.ts';
import type { ApplianceConfig } from '../config/appliance-config.ts';
import { findCatalogServer, type SelectedCatalog } from '../openshift/catalog/selected.ts';
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
import { parseReference } from '../registry/index.ts';
import { inspectRegistryImage } from './1-resolve/inspect-registry-image.ts';
import { resolveRelease, type ResolveReleaseInput } from './1-resolve/resolve-release.ts';
import { verifyRelease, type SignatureGate } from './1-resolve/verify-release.ts';
import { planMirror } from './2-select/plan-mirror.ts';
import { selectOperators } from './2-select/select-operators.ts';
import { mismatch, nameField } from './resolved/record.ts';
import type { SavedPlan } from './resolved/held.ts';
import type { BuildTools } from './tools.ts';

/* Content that several products share, by digest: the release, the registry server, operators and images. */

type PayloadRequest = {
  readonly config: ApplianceConfig;
  readonly graphUrl?: string;
  readonly signatures: SignatureGate;
};

type Carried = {
  readonly release: Release;
  readonly passed?: readonly Release[];
  /** Absent on media that are served by programs already on the hosts. */
  readonly registryImage?: Promise<RegistryImageChoice>;
  /** The oc-mirror workspace that all images come from, if there is one. */
  readonly workspace?: SurveyedWorkspace;
};

type SelectedPayload = {
  readonly catalogs: readonly SelectedCatalog[];
  readonly plan: MirrorPlan;
};

export type ClusterContent = SelectedPayload & {
  readonly release: Release;
  /** Present if all images come from a workspace of oc-mirror. */
  readonly workspace?: SurveyedWorkspace;
};

export type LiveIsoImages = ClusterContent & { readonly registryImage: RegistryImageChoice };

/**
 * The release that the configuration names, or that a saved plan found for it, verified. `workspace` names a
 * release and has its signature, if all images come from it.
 */
export async function resolvePayload(
  { config, graphUrl, signatures }: PayloadRequest,
  tools: BuildTools,
  workspace?: SurveyedWorkspace,
): Promise<Release> {
  const { resolved } = tools;
  const { version, channel, cpuArchitecture: arch, url: named = '' } = config.ocpRelease;
  const url =
    findPullspec(config, resolved.saved) ?? (workspace && findWorkspaceRelease(workspace, version));
  const release = await resolveVerified(
    {
      version,
      channel,
      ...withoutUndefined({ arch, url, graphUrl }),
    },
    tools,
    { signatures, ...(workspace && { workspace }) },
  );
  if (named === '') resolved.note(noteOfRelease(version, channel), digestOfRelease(release));
  return release;
}

/** Large files, and files that are executed, are fetched from a release with a verified signature only. */
export const resolveVerified = (
  wanted: ResolveReleaseInput,
  { engine }: BuildTools,
  given: { readonly signatures: SignatureGate; readonly workspace?: SurveyedWorkspace },
): Promise<Release> =>
  engine.run(verifyRelease, {
    ...given.signatures,
    release: engine.run(resolveRelease, wanted),
    ...(given.workspace && { workspace: given.workspace.signatures }),
  });

export async function selectPayload(
  { additionalImages, operators, ...config }: ApplianceConfig,
  { engine }: BuildTools,
  carried: Carried,
): Promise<SelectedPayload> {
  const { registryImage, ...found } = carried;
  const { release, workspace } = found;
  const { allArchitectures } = config.build;
  const arch = config.ocpRelease.cpuArchitecture ?? release.arch;
  const catalogs = engine.run(selectOperators, {
    catalogs: operators,
    arch,
    allArchitectures,
    unchanged: workspace !== undefined,
    ...(operators.some(({ local }) => local?.kind === 'directory') && {
      server: findCatalogServer(release),
    }),
  });
  const plan = await engine.run(planMirror, {
    ...found,
    ...(registryImage && { registryImage: registryImage.then(({ reference }) => reference) }),
    catalogs,
    additionalImages,
    allArchitectures,
    arch,
    blockedImages: config.blockedImages.map(({ name }) => name),
    includeSignatures: true,
    noSignaturesFrom: config.disableSigstoreRegistries,
  });
  return { catalogs: await catalogs, plan };
}

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
    /** True if no other release can be asked for. */
    readonly isOffline?: boolean;
  },
  tools: BuildTools,
): Promise<RegistryImageChoice> {
  const { release, configure, graphUrl, signatures } = options;
  const { saved, note } = tools.resolved;
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
  note(noteOfRelease(minor, CHANNEL), digestOfRelease(newer));
  const reference = getRegistryComponent(newer, configure);
  return tools.engine.run(inspectRegistryImage, { reference, ...component });
}

/** The graph is not asked again for what it answered when this was planned. */
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
