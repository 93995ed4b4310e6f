import type { Digest } from '../../base/digest.ts';
import type { ApplianceConfig } from '../../config/appliance-config.ts';
import type { Layout } from '../../iso/extent.ts';
import type { SelectedCatalog } from '../../openshift/catalog/selected.ts';
import type { HostNetwork } from '../../openshift/agent/values.ts';
import type { Overrides } from '../../openshift/installer/overrides.ts';
import type { MirrorPlan } from '../../openshift/mirror/plan.ts';
import type { Release } from '../../openshift/release/release.ts';
import type { BaseIso, GivenBaseIso } from '../../openshift/release/base-iso.ts';
import type { UserManifests } from '../../openshift/node/manifests.ts';
import type { TagDigests } from '../../registry/tag-ledger.ts';
import type { IsoRequest } from '../build-iso.ts';
import type { Lock } from '../lock/lock-file.ts';
import type { ImagePolicyCheck } from '../../stages/content/check-image-policy.ts';
import type { Space } from '../../stages/lay-out/check-size.ts';
import type { LiveLayout } from '../../stages/lay-out/lay-out-live-iso.ts';
import type { SignatureGate } from '../../stages/content/verify-release.ts';

/** Everything a live ISO is made from. */
export type LiveIsoRequest = IsoRequest & {
  readonly config: ApplianceConfig;
  readonly manifests: UserManifests;
  /** Of the folder of the configuration. */
  readonly overrides: Overrides;
  /** Networks of hosts. */
  readonly hosts?: readonly HostNetwork[];
  readonly ignition: 'installer' | 'embedded';
  readonly baseIso?: GivenBaseIso;
  /** Whether the cluster accepts images of OpenShift without a signature; absent: as its release needs. */
  readonly disableImagePolicy?: boolean;
  /** What it takes for the release to be trusted. */
  readonly signatures: SignatureGate;
  /** SOURCE_DATE_EPOCH, seconds; default: the release's creation. */
  readonly epoch?: number;
};

/** Everything that is decided before the first payload byte moves. */
export type PreparedIso = {
  readonly release: Release;
  readonly plan: MirrorPlan;
  readonly imagePolicy: ImagePolicyCheck;
  readonly catalogs: readonly SelectedCatalog[];
  /** What tags named. */
  readonly tags: TagDigests;
  /** Of all that is carried. */
  readonly contents: Digest;
  readonly layout: Layout;
  readonly space: Space;
  /** The files with mirrors that were read, in order: a later one replaces entries. */
  readonly registriesConf: readonly string[];
  readonly lock: Lock;
};

export type PreparedLiveIso = PreparedIso & {
  readonly layout: LiveLayout;
  readonly base: BaseIso;
  /** Of manifests that the cluster cannot take as they are. */
  readonly warnings: readonly string[];
};
