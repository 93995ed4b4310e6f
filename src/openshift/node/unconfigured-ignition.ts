import {
  IGNITION_VERSION,
  textFile,
  type File,
  type IgnitionConfig,
} from '../../ignition/config.ts';
import type { NodeRelease } from './manifests/generated-manifests.ts';

/** Tells the agent services that a person at the web interface configures the cluster. */
const INTERACTIVE_SENTINEL = '/etc/assisted/interactive-ui';

/** Made by the installer for another registry; ours is in the bootstrap configuration. */
const REGISTRIES_CONF = '/etc/containers/registries.conf';

export type EmbeddedInput = {
  readonly release: NodeRelease;
  readonly interactive: boolean;
  readonly registriesConf: string;
};

/**
 * The user's configuration without an installer: registries and the environment of agents, the same for
 * every host and every site. For media that need no assisted installer.
 */
export function renderEmbeddedUnconfigured(input: EmbeddedInput): IgnitionConfig {
  const { release } = input;
  return {
    ignition: { version: IGNITION_VERSION },
    storage: {
      files: [
        textFile(
          '/etc/assisted/agent-installer.env',
          `RELEASE_IMAGE=${release.digestReference}\n`,
          0o600,
        ),
        textFile(REGISTRIES_CONF, input.registriesConf, 0o644),
        ...(input.interactive ? [renderSentinel()] : []),
      ],
    },
  };
}

/**
 * The installer's configuration fitted to the medium: its registries.conf would win over ours and is
 * dropped; the sentinel of the interactive flow is there exactly once when the flow is on.
 */
export function adaptUnconfigured(
  config: IgnitionConfig,
  options: { readonly interactive: boolean },
): IgnitionConfig {
  const kept = (config.storage?.files ?? []).filter(
    ({ path }) => path !== REGISTRIES_CONF && path !== INTERACTIVE_SENTINEL,
  );
  const files = options.interactive ? [...kept, renderSentinel()] : kept;
  return { ...config, storage: { ...config.storage, files } };
}

const renderSentinel = (): File => textFile(INTERACTIVE_SENTINEL, '', 0o644);
