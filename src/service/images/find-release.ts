import { ApiFailure } from '../api-failure.ts';
import { findCluster } from '../clusters.ts';
import type { Service } from '../context.ts';
import type { InfraEnv } from '../infra-envs/infra-env.ts';
import type { Release } from '../store/release.ts';

/**
 * The release of the cluster that an InfraEnv is bound to.
 *
 * @param named which ISO of it, by `shortDigest`, if that is there
 * @throws ApiFailure 404, 500, 503
 */
export async function findRelease(
  { state, releases }: Pick<Service, 'state' | 'releases'>,
  infraEnv: InfraEnv,
  named?: string,
): Promise<Release> {
  const { id, cluster_id: cluster, cpu_architecture: architecture } = infraEnv;
  if (cluster === undefined) throw new ApiFailure(404, `infra env ${id} is not bound to a cluster`);
  const { openshift_version: version } = await findCluster({ state }, cluster, infraEnv);
  const release = await releases.find(version, architecture, named);
  if (release) return release;
  if (releases.isPartial()) {
    throw new ApiFailure(503, `what the store has of ${version} cannot be read now`);
  }
  throw new ApiFailure(
    500,
    `failed to get installer release: failed to get release image for version ${version}: ` +
      `the store has no ISO of this version for ${architecture}`,
  );
}

/** Nothing is served before there is anything. @throws ApiFailure 503 */
export async function requireStore({ releases }: Pick<Service, 'releases'>): Promise<void> {
  if (!(await releases.isEmpty())) return;
  throw new ApiFailure(503, 'the store has no ISO yet');
}

/** The registry of an ISO of sealift is read from the mounted ISO, which is not there. @throws ApiFailure 400 */
export function requireNetworkBoot({ isOwn, version, architecture }: Release): void {
  if (!isOwn) return;
  throw new ApiFailure(
    400,
    `the ISO of ${version} for ${architecture} cannot boot from the network: ` +
      'its registry is read from the mounted ISO',
  );
}
