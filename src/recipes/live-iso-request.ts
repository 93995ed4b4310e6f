import type { ApplianceConfig } from '../config/appliance-config.ts';
import type { GivenBaseIso } from '../stages/fetch-base-iso.ts';
import type { UserManifests } from '../stages/read-manifests.ts';

/** Everything a live ISO is made from. */
export type LiveIsoRequest = {
  readonly config: ApplianceConfig;
  readonly manifests: UserManifests;
  /** NMStateConfig documents for the installer. */
  readonly nmstate?: string;
  readonly output: string;
  readonly workDir: string;
  readonly ignition: 'installer' | 'embedded';
  readonly baseIso?: GivenBaseIso;
  /** UPDATE_URL_OVERRIDE. */
  readonly graphUrl?: string;
  /** SOURCE_DATE_EPOCH, seconds; default: the release's creation. */
  readonly epoch?: number;
};
