import type { Differences } from '../find-judge.ts';

/** Where sealift differs from coreos-installer on purpose. */
export const DIFFERENCES: Differences = {
  'live.iso: pxe':
    'the live ISO of an appliance serves its registry from the mounted ISO, and cannot boot from the network',
};
