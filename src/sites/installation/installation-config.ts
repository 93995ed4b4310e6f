import type { Secret } from '../../base/secret.ts';
import type { InstallationSettings } from '../../openshift/installation/mirrors.ts';

/** image-based-installation-config.yaml, complete: what the user left out has its default. */
export type InstallationConfig = InstallationSettings & {
  readonly architecture: 'amd64' | 'arm64';
  /** Ignition JSON, which may hold passwords. */
  readonly ignitionConfigOverride?: Secret;
  readonly pullSecret: Secret;
};
