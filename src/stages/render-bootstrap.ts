import type { Sealed, Stage } from '../engine/stage.ts';
import { formatValidIgnition } from '../ignition/format-valid.ts';
import { sizeOfRegistry } from '../openshift/mirror/plan-costs.ts';
import type { RegistryImageChoice } from '../openshift/mirror/registry-image.ts';
import {
  planClusterManifests,
  renderBootstrapIgnition,
  type BootstrapInput,
} from '../openshift/node/bootstrap-ignition.ts';
import { hashCorePassword } from '../openshift/node/core-password.ts';
import {
  describeCluster,
  type CarriedForCluster,
  type ClusterSettings,
} from '../openshift/node/describe-cluster.ts';
import type { Manifest } from '../openshift/node/extra-manifests.ts';
import { disablesImagePolicy } from '../openshift/release/image-policy.ts';
import { formatReference } from '../registry/reference.ts';

export type RenderBootstrapInput = CarriedForCluster &
  ClusterSettings & {
    readonly registryImage: RegistryImageChoice;
    readonly stopLocalRegistry: boolean;
    readonly skipLocalRegistry: boolean;
    readonly registryData: 'copy' | 'medium';
    readonly manifests: { readonly extra: readonly Manifest[]; readonly crs: readonly Manifest[] };
    readonly sshKey?: string;
    /** Absent: for releases that nobody signs. */
    readonly disableImagePolicy?: boolean;
    /** Of the user core. */
    readonly password?: { readonly text: Sealed; readonly salt: string };
  };

export type RenderedBootstrap = {
  /** JSON text. */
  readonly ignition: string;
  /** Of what a cluster of this release cannot take as it is, or does otherwise than others. */
  readonly warnings: readonly string[];
};

/**
 * The system configuration of the medium. Holds the hash of core's password when there is one, and no
 * other secret.
 *
 * @throws IntegrityError `ignition.invalid` when what we rendered breaks a rule of the format
 */
export const renderBootstrap: Stage<RenderBootstrapInput, RenderedBootstrap, unknown> = {
  name: 'render bootstrap',
  run: (input, _tools, { warn }) => {
    const described = describe(input);
    const warnings = listWarnings(described);
    for (const warning of warnings) warn(warning);
    const config = renderBootstrapIgnition(described);
    const ignition = formatValidIgnition(config, 'bootstrap configuration');
    return Promise.resolve({ ignition, warnings });
  },
};

function listWarnings(input: BootstrapInput): readonly string[] {
  const unsigned = `release ${input.release.version}: its cluster accepts images of OpenShift without a signature`;
  return [...planClusterManifests(input).warnings, ...(input.disableImagePolicy ? [unsigned] : [])];
}

function describe(input: RenderBootstrapInput): BootstrapInput {
  const { plan, registryImage, manifests, sshKey, password } = input;
  return {
    ...describeCluster(input, input),
    registryImage: {
      reference: formatReference(plan.registryImage?.source ?? registryImage.reference),
      useDistributionEntrypoint: registryImage.useDistributionEntrypoint,
    },
    stopLocalRegistry: input.stopLocalRegistry,
    skipLocalRegistry: input.skipLocalRegistry,
    disableImagePolicy: disablesImagePolicy(input.release.version, input.disableImagePolicy),
    registryData: input.registryData,
    registrySize: sizeOfRegistry(plan),
    extraManifests: manifests.extra,
    crs: manifests.crs,
    ...(sshKey !== undefined && { sshKey }),
    ...(password && { corePasswordHash: hashCorePassword(password.text.reveal(), password.salt) }),
  };
}
