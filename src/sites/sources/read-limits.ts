import { ConfigError } from '../../base/errors.ts';
import { formatSize } from '../../base/text/words.ts';

/** A site's inputs are some ten kilobytes; these keep hostile archives from filling memory or disk. */
export const MAX_FILE = 1 << 20;
export const MAX_SITE = 16 << 20;
const MAX_TOTAL = 4 * 2 ** 30;
export const MAX_TABLE = 64 << 20;
/** A site takes a few dozen values. */
export const MAX_COLUMNS = 10_000;
/** Ten thousand sites are what the program is made for. */
const MAX_ROWS = 50_000;
/** Ten thousand sites of two hundred columns each. */
const MAX_CELLS = 2_000_000;
const MAX_QUOTED = 4;
const QUOTED_FLOOR = 16 << 20;
/** Ten thousand sites of fifty files each. */
const MAX_MEMBERS = 500_000;
/**
 * How far a .tar.gz may unfold: sites made of one template reach some 60 times, a run of zeros 1,000
 * times. Not asked of what unfolds to little.
 */
const MAX_RATIO = 300;
const RATIO_FLOOR = 64 << 20;

/** @throws ConfigError `sites.too-large` */
export function refuseManyMembers(count: number, shownAs: string): void {
  if (count <= MAX_MEMBERS) return;
  throw new ConfigError('sites.too-large', `${shownAs} has more than ${MAX_MEMBERS} members`, {
    hint: 'split the sites over several sources',
  });
}

/** @throws ConfigError `sites.too-large` */
export function refuseManyRows(count: number): void {
  if (count <= MAX_ROWS) return;
  throw new ConfigError('sites.too-large', `the table has more than ${MAX_ROWS} rows`, {
    hint: 'split the table',
  });
}

/** @throws ConfigError `sites.too-large` */
export function refuseManyCells(count: number): void {
  if (count <= MAX_CELLS) return;
  throw new ConfigError(
    'sites.too-large',
    `the table has ${count} cells or more, and a table may have ${MAX_CELLS}`,
    { hint: 'split the table, or remove columns that are empty' },
  );
}

/**
 * The parser copies a cell for each quote that is wrong in it, so that a line of quotes costs the
 * square of its size.
 *
 * @param quoted bytes of all those copies
 * @throws ConfigError `sites.too-large` when they are many times the size of the table
 */
export function refuseManyQuotes({
  quoted,
  size,
  line,
}: {
  readonly quoted: number;
  readonly size: number;
  readonly line: number;
}): void {
  if (quoted <= QUOTED_FLOOR + MAX_QUOTED * size) return;
  throw new ConfigError(
    'sites.too-large',
    `line ${line} of the table has too many quotes in cells that do not begin with one`,
    { hint: 'put each such cell in quotes, and double the quotes in it' },
  );
}

/** @throws ConfigError `sites.too-large` when so many bytes came out of so few. */
export function refuseBomb(packed: number, unpacked: number, shownAs: string): void {
  if (unpacked > RATIO_FLOOR && unpacked > packed * MAX_RATIO) {
    throw new ConfigError(
      'sites.too-large',
      `${shownAs} unfolds to more than ${MAX_RATIO} times its size`,
      { hint: 'do not use this archive: no folder of sites packs so well' },
    );
  }
  refuseTotal(unpacked, shownAs);
}

/** @throws ConfigError `sites.too-large` */
export function refuseTotal(size: number, shownAs: string): void {
  if (size <= MAX_TOTAL) return;
  throw new ConfigError(
    'sites.too-large',
    `${shownAs} has more than ${formatSize(MAX_TOTAL)} of files`,
    { hint: 'split the sites over several sources' },
  );
}
