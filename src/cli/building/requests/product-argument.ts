import { resolve } from 'node:path';
import { UsageError } from '../../../base/errors.ts';
import { hasFile } from '../../../base/disk/files.ts';
import { findNearestName } from '../../../base/text/nearest-name.ts';
import { INSTALLATION_CONFIG_NAME } from '../../../sites/installation/read-installation-config.ts';
import type { CliHost } from '../../host.ts';

const PRODUCTS = ['live-iso', 'installation-iso', 'upgrade-iso'] as const;

/** Products that may be named in front of the configuration, each with the default name of that file. */
const DEFAULT_CONFIGS = {
  'live-iso': 'appliance-config.yaml',
  'installation-iso': INSTALLATION_CONFIG_NAME,
} as const;

export type NamedProduct = keyof typeof DEFAULT_CONFIGS;

/**
 * The configuration out of `[product] [config]`, both of which may be left out. A word like a product
 * that is not a file is a mistyped one.
 *
 * @throws UsageError `usage.product`
 */
export async function findConfigArgument(
  args: readonly string[],
  products: readonly NamedProduct[],
  { cwd }: Pick<CliHost, 'cwd'>,
): Promise<string> {
  const product = products.find((name) => name === args[0]);
  const names = product === undefined ? args : args.slice(1);
  const [config = DEFAULT_CONFIGS[product ?? 'live-iso']] = names;
  const meant = nearestProduct(config);
  const isMistyped = meant !== undefined && !(await hasFile(resolve(cwd, config)));
  if (names.length <= 1 && !isMistyped) return config;
  throw new UsageError('usage.product', `"${config}" is not a product`, {
    expected: PRODUCTS.join(' or '),
    found: config,
    hint: meant === undefined ? 'name one product and one file' : `did you mean "${meant}"?`,
  });
}

/** Words without a dot or slash are not names of configuration files, as a rule. */
function nearestProduct(word: string): string | undefined {
  if (/[./]/.test(word)) return undefined;
  if (/^config-?isos?$/.test(word)) return 'sealift config-iso build';
  return findNearestName(word, PRODUCTS);
}
