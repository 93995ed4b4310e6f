import { readFile, stat } from 'node:fs/promises';
import { ConfigError } from '../../base/errors.ts';
import { formatSize } from '../../base/text/quantities.ts';
import { readCsvTable } from './read-csv-table.ts';
import { MAX_TABLE } from './read-limits.ts';
import type { Table } from './read-list.ts';
import { readYamlTable } from './read-yaml-table.ts';

/**
 * Reads a table of sites: comma-separated values (RFC 4180; also with `;` or tabs) with a header row,
 * or YAML, a list of mappings or a mapping from name to mapping.
 *
 * @throws ConfigError `sites.unreadable`, `sites.too-large`, `sites.not-utf8`
 */
export async function readTable(path: string, signal: AbortSignal): Promise<Table> {
  const text = decodeTable(path, await readBytes(path, signal));
  if (/\.tsv$/i.test(path)) return readCsvTable(text, '\t');
  return /\.csv$/i.test(path) ? readCsvTable(text) : readYamlTable(text);
}

async function readBytes(path: string, signal: AbortSignal): Promise<Buffer> {
  const { size } = await stat(path);
  if (size > MAX_TABLE) {
    const sizes = `${path} has ${formatSize(size)}, and a table may have ${formatSize(MAX_TABLE)}`;
    throw new ConfigError('sites.too-large', sizes, { hint: 'split the table' });
  }
  return readFile(path, { signal });
}

/** A byte order mark is dropped by the decoder. */
function decodeTable(path: string, bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new ConfigError('sites.not-utf8', `table ${path} is not UTF-8`, {
      cause,
      hint: 'save it as "CSV UTF-8"',
    });
  }
}
