import { stat } from 'node:fs/promises';
import { isUnreadable } from '../../base/disk/disk-errors.ts';
import { openToRead } from '../../base/disk/open-file.ts';
import { ConfigError } from '../../base/errors.ts';
import { readFilled } from './fill.ts';
import { readFolder } from './folder.ts';
import type { MemberSource, SiteList } from './list.ts';
import { listMembers } from './members.ts';
import { splitSites } from './split.ts';
import { readTar } from './tar.ts';
import { readZip } from './zip.ts';

/*
 * Main file of the sources: a path comes in, and a list of sites leaves, not read yet. It detects the kind of
 * the source and calls the file that reads it. It must not know the content of a site's files.
 */

export type SiteListOptions = {
  /** Folder with the files of a site and `{{ column }}` holes: for tables, and only for them. */
  readonly template?: string;
  readonly signal: AbortSignal;
};

type SourceKind = 'folder' | 'zip' | 'tar' | 'tar.gz' | 'table';

/**
 * Lists the sites of a source without reading them. A source is a folder of site folders, one site
 * folder, a .zip, .tar or .tar.gz of either, or a table (.xlsx, .csv, .yaml) that fills a template. A
 * fault of one site is among the problems and keeps only that site out. Nothing is modified.
 *
 * | what                     | limit                                       |
 * | ------------------------ | ------------------------------------------- |
 * | a file                   | 1 MiB                                       |
 * | a site                   | 16 MiB                                      |
 * | all sites                | 4 GiB                                       |
 * | a table                  | 64 MiB                                      |
 * | an archive               | 500,000 members, 300 times its packed bytes |
 *
 * The inputs of a .tar.gz are unpacked once, into a temporary file (`TMPDIR`) that has no name and
 * is removed when the list is closed or the process ends.
 *
 * @throws ConfigError `sites.unreadable`, `sites.unknown-kind`, `sites.damaged`, `sites.too-large`,
 * `sites.template`
 */
export async function listSites(path: string, options: SiteListOptions): Promise<SiteList> {
  const { template, signal } = options;
  const kind = await detectKind(path);
  if (kind === 'table') {
    if (template === undefined)
      throw templateError(`table ${path} needs a template folder`, 'name it with --template');
    return readFilled(path, { template, signal });
  }
  if (template !== undefined) {
    throw templateError(
      `${path} has complete sites, so there are no values to fill the template with`,
      'leave out --template',
    );
  }
  const source = await readSource(path, kind, signal);
  try {
    return await splitSites(listMembers(source));
  } catch (error) {
    await source.close();
    throw error;
  }
}

const templateError = (message: string, hint: string): ConfigError =>
  new ConfigError('sites.template', message, { hint });

function readSource(
  path: string,
  kind: Exclude<SourceKind, 'table'>,
  signal: AbortSignal,
): Promise<MemberSource> {
  switch (kind) {
    case 'folder':
      return readFolder(path, signal);
    case 'zip':
      return readZip(path, signal);
    case 'tar':
      return readTar(path, { packed: false, signal });
    case 'tar.gz':
      return readTar(path, { packed: true, signal });
  }
}

/** @throws ConfigError `sites.unreadable`, `sites.unknown-kind` for anything but a table */
export async function requireTable(path: string): Promise<void> {
  if ((await detectKind(path)) !== 'table') unknownKind(path);
}

/** Detects tables by their names and archives by their first bytes, regardless of their names. */
async function detectKind(path: string): Promise<SourceKind> {
  try {
    const found = await stat(path);
    if (found.isDirectory()) return 'folder';
    if (!found.isFile()) return unknownKind(path); // reading a pipe may take forever
    if (/\.(csv|tsv|xlsx|ya?ml)$/i.test(path)) return 'table';
    if (SPREADSHEET.test(path)) return refuseSpreadsheet(path);
    return kindOfHead(await readHead(path)) ?? unknownKind(path);
  } catch (cause) {
    if (!isUnreadable(cause)) throw cause;
    throw new ConfigError('sites.unreadable', `${path} cannot be read`, {
      cause,
      hint: 'check the name and permissions',
    });
  }
}

/** Other spreadsheets; most of these formats are archives inside, so they are detected by name. */
const SPREADSHEET = /\.(xls[mb]?|ods|numbers)$/i;

function refuseSpreadsheet(path: string): never {
  throw new ConfigError(
    'sites.spreadsheet',
    `${path} is a spreadsheet, which sealift cannot read`,
    {
      expected: 'a table as .xlsx, .csv, .tsv or .yaml',
      hint: 'save it as "Excel workbook (.xlsx)", or export it as "CSV UTF-8 (comma delimited)"',
    },
  );
}

async function readHead(path: string): Promise<Buffer> {
  const file = await openToRead(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(512), 0, 512, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

function kindOfHead(head: Buffer): SourceKind | undefined {
  const start = head.toString('latin1', 0, 4);
  if (start === 'PK\x03\x04' || start === 'PK\x05\x06') return 'zip'; // APPNOTE 4.3.7, 4.3.16
  if (start.startsWith('\x1f\x8b')) return 'tar.gz'; // RFC 1952 2.3.1
  return isTarHeader(head) ? 'tar' : undefined;
}

/** POSIX pax, ustar Header Block: older tars and GNU's have no magic, but all have the checksum. */
function isTarHeader(head: Buffer): boolean {
  if (head.length < 512) return false;
  const wanted = /^[ 0]*([0-7]+)[ \0]/.exec(head.toString('latin1', 148, 156))?.[1] ?? '';
  const counted = Buffer.concat([head.subarray(0, 148), Buffer.alloc(8, ' '), head.subarray(156)]);
  return parseInt(wanted, 8) === counted.reduce((sum, byte) => sum + byte, 0);
}

function unknownKind(path: string): never {
  throw new ConfigError(
    'sites.unknown-kind',
    `${path} is not a folder, archive or table of sites`,
    {
      expected: 'a folder, .zip, .tar, .tar.gz, .xlsx, .csv or .yaml',
      hint: 'give a folder, a .zip, .tar or .tar.gz archive, or an .xlsx, .csv or .yaml table',
    },
  );
}
