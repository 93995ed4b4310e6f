import { DEPLOYMENT_ISO_ROW } from './build-deployment-iso.ts';
import { DISK_IMAGE_ROW } from './build-disk-image.ts';
import { INSTALLATION_ISO_ROW } from './build-installation-iso.ts';
import { LIVE_ISO_ROW } from './build-live-iso.ts';
import { UPGRADE_ISO_ROW } from './build-upgrade-iso.ts';
import type { ProductTable } from './product.ts';

/*
 * The table of products. To add a product, write its page in src/stages, and add its row. `build`,
 * `plan`, `lock` and `reproduce`, their help, the completion and the documents read this table; the
 * commands of its first row need no name.
 */

export const PRODUCTS: ProductTable = [
  LIVE_ISO_ROW,
  INSTALLATION_ISO_ROW,
  UPGRADE_ISO_ROW,
  DISK_IMAGE_ROW,
  DEPLOYMENT_ISO_ROW,
];
