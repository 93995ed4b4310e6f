import type { Http } from '../../base/http/http.ts';
import type { TlsOptions } from '../../base/http/tls.ts';
import { withoutUndefined } from '../../base/lists.ts';
import type { Stage } from '../../engine/index.ts';
import type { RpmArchitecture } from '../../openshift/release/bundle.ts';
import type { Release } from '../../openshift/release/release.ts';
import { resolveUpgradePath, type UpgradePath } from '../../openshift/release/upgrade-path.ts';

export type PlanUpgradePathInput = {
  /** The version that the cluster has. */
  readonly from: string;
  /** The release that it is upgraded to. */
  readonly release: Release;
  /** Channel without a minor version. */
  readonly channel: string;
  readonly arch: RpmArchitecture;
  /** UPDATE_URL_OVERRIDE, if it is set. */
  readonly graphUrl?: string;
};

type Tools = { readonly http: Http; readonly tls?: TlsOptions };

/** Plans the releases that a cluster passes on its way. */
export const planUpgradePath: Stage<PlanUpgradePathInput, UpgradePath, Tools> = {
  name: 'plan upgrade path',
  run: ({ arch, graphUrl: url, ...wanted }, { http, tls }, { signal }) =>
    resolveUpgradePath(wanted, { http, arch, signal, ...withoutUndefined({ url, tls }) }),
};
