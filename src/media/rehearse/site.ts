import type { HostNeed } from '../../openshift/node/host-needs.ts';
import type { ConfigImageCheck } from '../config-image.ts';
import { cannotKnow, type RehearsedStep, will, willNot } from './step.ts';

const PART = 'hosts';

/** The hosts of one kind at a site. */
export type PlannedHosts = {
  readonly host: HostNeed['host'];
  readonly count: number;
  /** Bytes of the smallest disk that the site lets an installation take; absent if it does not say. */
  readonly minDisk?: number;
};

/** A need of the hosts of a site, with their number if the site is known. Plain JSON. */
export type PlannedNeed = HostNeed & { readonly count?: number };

/** The hosts of the cluster in a configuration image, which has no sizes of disks. */
export function listConfigured(image: ConfigImageCheck | undefined): readonly PlannedHosts[] {
  const nodes = image?.cluster?.nodes;
  if (!nodes) return [];
  const { masters, arbiters, workers } = nodes;
  const isSingle = masters === 1 && arbiters + workers === 0;
  const all: readonly PlannedHosts[] = [
    { host: isSingle ? 'single node' : 'control plane', count: masters },
    { host: 'arbiter', count: arbiters },
    { host: 'worker', count: workers },
  ];
  return all.filter(({ count }) => count > 0);
}

/** The needs of the hosts that a site has; all of them if the site is not known. */
export const planNeeds = (
  needs: readonly HostNeed[],
  site: readonly PlannedHosts[],
): readonly PlannedNeed[] =>
  site.length === 0
    ? needs
    : site.flatMap(({ host, count }) =>
        needs.filter((need) => need.host === host).map((need) => ({ ...need, count })),
      );

/** Holds the needs of hosts against a site. Only the disks are written down there. */
export function rehearseSite(
  needs: readonly HostNeed[],
  site: readonly PlannedHosts[],
): readonly RehearsedStep[] {
  return site.flatMap((planned) =>
    needs.filter(({ host }) => host === planned.host).map((need) => judgeHosts(need, planned)),
  );
}

const inGigabytes = (bytes: number): string => `${Math.ceil(bytes / 10 ** 9)} GB`;

function judgeHosts({ host, disk }: HostNeed, { count, minDisk }: PlannedHosts): RehearsedStep {
  if (count === 0) {
    return willNot(PART, `the cluster gets a ${host}`, { reason: 'the site has 0 hosts for it' });
  }
  const step = `the disk of each ${host} has ${inGigabytes(disk)}`;
  if (minDisk === undefined) {
    return cannotKnow(PART, step, {
      reason: 'the site does not ask each host for a size (minSizeGigabytes)',
    });
  }
  const reason = `the site takes disks from ${inGigabytes(minDisk)} on`;
  return minDisk >= disk ? will(PART, step, { reason }) : cannotKnow(PART, step, { reason });
}
