import type { BlobCache } from '../../base/store/blob-cache.ts';
import type { Sealed, Stage } from '../../engine/index.ts';
import { formatValidIgnition } from '../../ignition/index.ts';
import { digestRegistryTree, planLiveRegistry } from '../../media/tree.ts';
import { sizeOfRegistry } from '../../openshift/mirror/costs.ts';
import type { RegistryImageChoice } from '../../openshift/mirror/server.ts';
import {
  planClusterManifests,
  renderBootstrapIgnition,
  type BootstrapInput,
} from '../../openshift/node/bootstrap.ts';
import {
  describeCluster,
  type CarriedForCluster,
  type ClusterSettings,
} from '../../openshift/node/cluster.ts';
import { hashCorePassword, type EmbeddedTree, drawSalt } from '../../openshift/node/install.ts';
import type { NodeManifest } from '../../openshift/node/manifests.ts';
import type { RegistryCarrier } from '../../openshift/node/registry.ts';
import { OVERRIDES } from '../../openshift/release/gates.ts';
import { disablesImagePolicy, leavesOverrides } from '../../openshift/release/image-policy.ts';
import { formatReference } from '../../registry/index.ts';

export type RenderBootstrapInput = CarriedForCluster &
  ClusterSettings & {
    readonly registryImage: RegistryImageChoice;
    readonly stopLocalRegistry: boolean;
    readonly skipLocalRegistry: boolean;
    readonly registryData: 'copy' | 'medium';
    /** Default: `iso`. */
    readonly registryOn?: RegistryCarrier;
    /** Further kernel arguments of the recovery entry. */
    readonly menuKargs?: readonly string[];
    readonly manifests: {
      readonly extra: readonly NodeManifest[];
      readonly crs: readonly NodeManifest[];
    };
    /** registries.conf of the nodes. */
    readonly registriesConf: string;
    /** Absent for releases without signatures. */
    readonly disableImagePolicy?: boolean;
    /** Password of the user core. */
    readonly password?: { readonly text: Sealed; readonly salt: string };
  };

export type RenderedBootstrap = {
  /** JSON text. */
  readonly ignition: string;
  /** Warnings about what a cluster of this release cannot take as it is, or handles differently. */
  readonly warnings: readonly string[];
};

/** Renders the system configuration. Its only secret, if any, is the hash of core's password. */
export const renderBootstrap: Stage<
  RenderBootstrapInput,
  RenderedBootstrap,
  { readonly cache: BlobCache }
> = {
  name: 'render bootstrap',
  run: async (input, { cache }, { warn }) => {
    const described = describe(input, await describeTree(input, cache));
    const hasOverrides = leavesOverrides(input.release.version, input.disableImagePolicy);
    const warnings = listWarnings(described, hasOverrides);
    for (const warning of warnings) warn(warning);
    const config = renderBootstrapIgnition(described);
    const ignition = formatValidIgnition(config, 'bootstrap configuration');
    return { ignition, warnings };
  },
};

/**
 * Draws the salt of core's password: random, so that no attacker can hash a dictionary for all media of a
 * release, and stored with the password that it belongs to, so that the same password gives the same medium.
 */
export const drawPasswordSalt: Stage<{ readonly password: Sealed }, string, unknown> = {
  name: 'draw password salt',
  reuse: { kind: 'drawn' },
  run: () => Promise.resolve(drawSalt()),
};

function listWarnings(input: BootstrapInput, hasOverrides: boolean): readonly string[] {
  const unsigned = `release ${input.release.version}: its cluster accepts images of OpenShift without a signature`;
  return [
    ...planClusterManifests(input).warnings,
    ...(input.disableImagePolicy ? [unsigned] : []),
    ...(hasOverrides ? [OVERRIDES.warning] : []),
  ];
}

/** Describes the registry's tree as it is on hosts that have copied it. */
async function describeTree(
  { plan, release }: RenderBootstrapInput,
  cache: BlobCache,
): Promise<EmbeddedTree> {
  const files = await planLiveRegistry({ plan, release, cache });
  return { size: sizeOfRegistry(plan), digest: digestRegistryTree(files) };
}

function describe(input: RenderBootstrapInput, registryTree: EmbeddedTree): BootstrapInput {
  const { plan, registryImage, manifests, password, ...settings } = input;
  return {
    ...settings,
    ...describeCluster(input, input),
    registryImage: {
      reference: formatReference(plan.registryImage?.source ?? registryImage.reference),
      useDistributionEntrypoint: registryImage.useDistributionEntrypoint,
    },
    disableImagePolicy: disablesImagePolicy(input.release.version, input.disableImagePolicy),
    registryTree,
    extraManifests: manifests.extra,
    crs: manifests.crs,
    ...(password && { corePasswordHash: hashCorePassword(password.text.reveal(), password.salt) }),
  };
}
