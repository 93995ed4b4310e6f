import type { Http } from '../../base/http/http.ts';
import type { TlsOptions } from '../../base/http/tls.ts';
import { withoutUndefined } from '../../base/lists.ts';
import type { Stage } from '../../engine/index.ts';
import type { RpmArchitecture } from '../../openshift/release/bundle.ts';
import type { Release } from '../../openshift/release/release.ts';
import { resolveUpgradePath, type UpgradePath } from '../../openshift/release/upgrade-path.ts';

export type PlanUpgradePathInput = {
  readonly from: string;
  readonly release: Release;
  /** Channel without a minor version. */
  readonly channel: string;
  readonly arch: RpmArchitecture;
  /** UPDATE_URL_OVERRIDE, if it is set. */
  readonly graphUrl?: string;
};

type Tools = { readonly http: Http; readonly tls?: TlsOptions };

export const planUpgradePath: Stage<PlanUpgradePathInput, UpgradePath, Tools> = {
  name: 'plan upgrade path',
  run: ({ arch, graphUrl: url, ...wanted }, { http, tls }, { signal }) =>
    resolveUpgradePath(wanted, { http, arch, signal, ...withoutUndefined({ url, tls }) }),
};
