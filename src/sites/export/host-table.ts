import type { DocumentProblem } from '../../base/errors.ts';
import { groupBy, withoutUndefined } from '../../base/lists.ts';
import { parseMacAddress } from '../../base/mac-address.ts';
import type { Redaction } from '../../base/text/redact.ts';
import { unlessEmpty } from '../../base/text/words.ts';
import type { Table, TableRow } from '../../table/index.ts';

/* Owns the table of controllers, which the files of most sites do not name. */

/** The controller of a host (BMC). */
export type Controller = {
  readonly address: string;
  readonly username?: string;
  readonly password?: string;
  readonly disableCertificateVerification: boolean;
};

export type FoundController = { readonly controller?: Controller; readonly bootMac?: string };

/** Finds the row of a host by the names of the site and of the host. */
export type FindController = (site: string, hostname: string) => FoundController | undefined;

const COLUMNS = ['site', 'host', 'bmcAddress', 'bmcUsername', 'bmcPassword', 'bootMACAddress'];

export type HostTable = {
  readonly find: FindController;
  readonly problems: readonly DocumentProblem[];
};

/**
 * Reads the rows of a table by the column `host`; the column `site` tells hosts of one name apart. Passwords
 * are masked from then on.
 */
export function readHostTable(table: Table, file: string, redaction: Redaction): HostTable {
  const problems: DocumentProblem[] = [];
  const place = {
    severity: 'error',
    code: 'sites.host-table',
    file,
    path: '',
    lineText: '',
  } as const;
  const report = (line: number, problem: string): number =>
    problems.push({ ...place, line, column: 1, problem });
  for (const { line, problem } of [...table.tableProblems, ...table.rowProblems])
    report(line, problem);
  const unknown = new Set(table.rows.flatMap(({ cells }) => [...cells.keys()]));
  for (const column of COLUMNS) unknown.delete(column);
  for (const column of unknown) {
    report(
      table.headerLine ?? 1,
      `there is no use for the column "${column}": columns are ${COLUMNS.join(', ')}`,
    );
  }
  const keyOf = ({ cells }: TableRow): string => nameRow(cells.get('site'), cells.get('host'));
  const groups = groupBy(table.rows, keyOf);
  for (const [first, ...others] of groups.values()) {
    for (const { line } of others) report(line, `has the host of line ${first?.line ?? 1} again`);
  }
  const shared = groupBy(table.rows, ({ cells }) => cells.get('bmcAddress') ?? '');
  for (const [address, [first, ...others]] of shared) {
    for (const { line } of address === '' ? [] : others)
      report(line, `has the controller of line ${first?.line ?? 1} again`);
  }
  for (const row of table.rows) checkRow(row, report, redaction);
  return {
    problems,
    find: (site, hostname) => {
      const [row] = groups.get(nameRow(site, hostname)) ?? groups.get(nameRow('', hostname)) ?? [];
      return row && readRow(row);
    },
  };
}

const nameRow = (site = '', host = ''): string => JSON.stringify([site, host.toLowerCase()]);

function checkRow(
  { line, cells }: TableRow,
  report: (line: number, problem: string) => void,
  redaction: Redaction,
): void {
  const { host = '', bmcPassword = '', bootMACAddress = '' } = Object.fromEntries(cells);
  if (bmcPassword !== '') redaction.add(bmcPassword);
  if (host === '') report(line, 'column "host" is empty');
  if (bootMACAddress !== '' && parseMacAddress(bootMACAddress) === undefined)
    report(line, 'column "bootMACAddress" is not a MAC address');
}

function readRow({ cells }: TableRow): FoundController {
  const text = (column: string): string | undefined => unlessEmpty(cells.get(column));
  const address = text('bmcAddress');
  const mac = text('bootMACAddress');
  return withoutUndefined({
    bootMac: mac === undefined ? undefined : parseMacAddress(mac),
    controller:
      address === undefined
        ? undefined
        : {
            address,
            // As siteconfig writes it: controllers have certificates of their own.
            disableCertificateVerification: true,
            ...withoutUndefined({ username: text('bmcUsername'), password: text('bmcPassword') }),
          },
  });
}
