import { Command, type Option } from 'commander';
import { resolve } from 'node:path';
import { hasFile } from '../base/disk/files.ts';
import { UsageError } from '../base/errors.ts';
import { findNearestName } from '../base/text/words.ts';
import type { ConfigNames } from '../config/load.ts';
import type { CliHost } from './host.ts';
import type { ProductRow, ProductTable } from './product.ts';

/* Owns how a command finds the product that its arguments mean, and whose options it was given. */

const namesOf = (products: readonly ProductRow[]): string =>
  products.map(({ name }) => name).join(' or ');

/** The argument of commands whose first word may be one of these products. */
export const productArgument = (products: readonly ProductRow[]): [string, string] => [
  '[args...]',
  `product (${namesOf(products)}) and configuration files (appliance-config.yaml); later files override earlier ones`,
];

/** The files that the argument of a command named by its product has: one, or several. */
export const toNames = (config: string | ConfigNames): ConfigNames =>
  typeof config === 'string' ? [config] : config;

/**
 * Finds the configuration files in `[product] [config...]`, both optional; the first word may name one of
 * `named`. A word that resembles a product and is not a file is a mistyped product.
 */
export async function findConfigArgument(
  args: readonly string[],
  { products, named }: { readonly products: ProductTable; readonly named: readonly ProductRow[] },
  { cwd }: Pick<CliHost, 'cwd'>,
): Promise<ConfigNames> {
  const product = named.find(({ name }) => name === args[0]);
  const names = product === undefined ? args : args.slice(1);
  const [config = (product ?? products[0]).config, ...overlays] = names;
  const meant = nearestProduct(config, products);
  const isMistyped = meant !== undefined && !(await hasFile(resolve(cwd, config)));
  if (!isMistyped) return [config, ...overlays];
  throw new UsageError('usage.product', `"${config}" is not a product`, {
    expected: namesOf(products),
    found: config,
    hint: `did you mean "${meant}"?`,
  });
}

/** Finds the product that a word resembles; a word with a dot or a slash is a file name. */
function nearestProduct(word: string, products: ProductTable): string | undefined {
  if (/[./]/.test(word)) return undefined;
  if (/^config-?isos?$/.test(word)) return 'sealift config-iso build';
  return findNearestName(
    word,
    products.map(({ name }) => name),
  );
}

/**
 * Adds the options of other products, for commands that learn from their arguments which product is meant.
 * The returned function refuses options that the product does not have.
 */
export function addOtherProducts(
  command: Command,
  products: ProductTable,
  others: readonly ProductRow[],
): (product: ProductRow) => void {
  for (const { name, marks } of others) {
    const title = `Options for ${name.replace(/-iso$/, ' ISO').replace('-', ' ')}s:`;
    marks?.addOptions(command.optionsGroup(title));
  }
  return (product) => {
    for (const option of command.options) {
      if (command.getOptionValue(option.attributeName()) === undefined) continue;
      const owners = products.filter((row) => listFlags(row).has(option.long));
      const [owner] = owners;
      if (owner && !owners.includes(product)) throw otherProduct(option, owner, product);
    }
  };
}

const listFlags = ({ addOptions }: ProductRow): ReadonlySet<string | undefined> =>
  new Set(addOptions(new Command()).options.map(({ long }) => long));

function otherProduct(option: Option, owner: ProductRow, product: ProductRow): UsageError {
  const name = option.long ?? option.flags;
  return new UsageError(
    'usage.other-product',
    `${name} is for the configuration of ${owner.maker}`,
    {
      expected: `the configuration of ${owner.maker}`,
      found: `that of ${product.maker}`,
      hint: `leave ${name} out`,
    },
  );
}
