import { isSignedVersion } from './version.ts';

/**
 * Since 4.21 a cluster accepts the images of OpenShift only with a signature (ClusterImagePolicy
 * `openshift`). With any text in this variable `openshift-install` leaves that policy out. The installer
 * that counts runs inside the assisted service of the rendezvous host.
 */
export const IMAGE_POLICY_VARIABLE = 'OPENSHIFT_INSTALL_EXPERIMENTAL_DISABLE_IMAGE_POLICY';

/**
 * Whether the medium switches the image policy of its cluster off: as was asked, and else for CI builds
 * and nightlies alone, which nobody signs and no node would start.
 */
export const disablesImagePolicy = (version: string, wish: boolean | undefined): boolean =>
  wish ?? !isSignedVersion(version);
