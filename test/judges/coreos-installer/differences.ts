import type { Differences } from '../find-judge.ts';

const OWN_REGISTRY =
  'the medium serves its registry from the mounted ISO, and cannot boot from the network';

/** Where sealift differs from coreos-installer on purpose. */
export const DIFFERENCES: Differences = {
  'an argument appended in two runs':
    'an argument that is there already moves to the end, so that a job that runs twice gives the same ISO',
  'live.iso: pxe': OWN_REGISTRY,
};

/** Where a product of sealift that coreos-installer changed is seen differently on purpose. */
export const PRODUCT_DIFFERENCES: Differences = {
  'live.iso: pxe': OWN_REGISTRY,
  'built.iso: pxe': OWN_REGISTRY,
  'custom.iso: pxe': OWN_REGISTRY,
  'grown.iso: pxe': OWN_REGISTRY,
};
