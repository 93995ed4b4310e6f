import { resolve } from 'node:path';
import type { Command, Option } from 'commander';
import { UsageError } from '../../base/errors.ts';
import { readConfigText, type ConfigNames } from '../../config/load.ts';
import { isInstallationConfig } from '../../sites/installation.ts';
import type { CliHost } from '../host.ts';
import { addInstallationOptions, refuseOverlays } from './recipe-command.ts';

/** How messages call what makes each product. */
const MAKERS = {
  'live-iso': 'an appliance',
  'upgrade-iso': 'an upgrade ISO',
  'installation-iso': 'an installation ISO',
} as const;

type Product = keyof typeof MAKERS;

/** Options of live ISOs that the other products do not have. */
const OF_LIVE_ISOS: Readonly<Record<string, readonly Product[]>> = {
  '--ignition': ['live-iso'],
  '--ignition-area': ['live-iso'],
  '--base-iso': ['live-iso', 'installation-iso'],
  '--set': ['live-iso', 'upgrade-iso'],
};

/**
 * Adds the options of other products to those of live ISOs, for commands that see in what they are given
 * which product is meant. What is returned refuses, once that is known, the options of the others.
 *
 * @param addUpgrade adds those of upgrade ISOs alone; absent: the command does not take them
 */
export function addOtherProducts(
  command: Command,
  addUpgrade?: (command: Command) => Command,
): (product: Product) => void {
  const owners = new Map<Option, readonly Product[]>(
    command.options.flatMap((option) => {
      const products = OF_LIVE_ISOS[option.long ?? ''];
      return products ? [[option, products] as const] : [];
    }),
  );
  const addGroup = (product: Product, add: (command: Command) => Command): void => {
    const before = new Set(command.options);
    add(command.optionsGroup(`Options for ${product.replace('-iso', '')} ISOs:`));
    for (const option of command.options) if (!before.has(option)) owners.set(option, [product]);
  };
  addGroup('installation-iso', addInstallationOptions);
  if (addUpgrade) addGroup('upgrade-iso', addUpgrade);
  return (product) => {
    for (const [option, products] of owners) {
      const isGiven = command.getOptionValue(option.attributeName()) !== undefined;
      if (isGiven && !products.includes(product)) throw otherProduct(option, products, product);
    }
  };
}

function otherProduct(option: Option, [owner]: readonly Product[], product: Product): UsageError {
  const [expected, found] = [MAKERS[owner ?? 'live-iso'], MAKERS[product]];
  const name = option.long ?? option.flags;
  return new UsageError('usage.other-product', `${name} is for the configuration of ${expected}`, {
    expected: `the configuration of ${expected}`,
    found: `that of ${found}`,
    hint: `leave ${name} out`,
  });
}

/** Whether the configuration is that of an installation ISO; those have no overlays. @throws UsageError `usage.overlays` */
export function isInstallationNamed(config: ConfigNames, { cwd }: Pick<CliHost, 'cwd'>): boolean {
  const path = resolve(cwd, config[0]);
  const isInstallation = isInstallationConfig(path, readConfigText(path));
  if (isInstallation) refuseOverlays(config);
  return isInstallation;
}
