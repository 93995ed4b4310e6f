import type { Differences } from '../find-judge.ts';

/** Where sealift differs from coreos-installer on purpose. */
export const DIFFERENCES: Differences = {
  'an argument appended in two runs':
    'an argument that is there already moves to the end, so that a job that runs twice gives the same ISO',
  'live.iso: pxe':
    'the live ISO of an appliance serves its registry from the mounted ISO, and cannot boot from the network',
};

/** Where a product of sealift that coreos-installer changed is seen differently on purpose. */
export const PRODUCT_DIFFERENCES: Differences = {};

/** Where what sealift wrote into an ISO is seen differently on purpose. */
export const OWN_DIFFERENCES: Differences = {};
