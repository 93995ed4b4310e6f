import type { DocumentProblem } from '../../base/errors.ts';
import { groupBy, withoutUndefined } from '../../base/lists.ts';
import { MAC_FORM, parseMacAddress } from '../../base/mac-address.ts';
import type { Redaction } from '../../base/text/redact.ts';
import { unlessEmpty } from '../../base/text/words.ts';
import type { Table, TableProblem, TableRow } from '../../table/index.ts';

/* Owns the table of controllers, which the files of most sites do not name. */

/** The controller of a host (BMC). */
export type HostController = {
  readonly address: string;
  readonly username?: string;
  readonly password?: string;
  readonly disableCertificateVerification: boolean;
};

export type FoundController = { readonly controller?: HostController; readonly bootMac?: string };

/** Finds the row of a host by the names of the site and of the host. */
export type FindController = (site: string, hostname: string) => FoundController | undefined;

export type HostTable = {
  readonly find: FindController;
  readonly problems: readonly DocumentProblem[];
};

/**
 * Reads the rows of a table by the columns `host`, `bmcAddress`, `bmcUsername`, `bmcPassword` and
 * `bootMACAddress`; the column `site` tells hosts of one name apart. Other columns are those of a planner.
 * Passwords are masked from then on.
 */
export function readControllers(table: Table, file: string, redaction: Redaction): HostTable {
  const { rows, tableProblems, rowProblems } = table;
  for (const { cells } of rows) redaction.add(cells.get('bmcPassword') ?? '');
  const hosts = groupBy(rows, ({ cells }) => nameRow(cells.get('site'), cells.get('host')));
  const controllers = groupBy(rows, ({ cells }) => cells.get('bmcAddress') ?? '');
  controllers.delete('');
  const place = { severity: 'error', code: 'sites.host-table', file, path: '' } as const;
  return {
    problems: [
      ...tableProblems,
      ...rowProblems,
      ...rows.flatMap(findFaults),
      ...findRepeatedRows(hosts, 'host'),
      ...findRepeatedRows(controllers, 'controller'),
    ].map((problem) => ({ ...place, column: 1, lineText: '', ...problem })),
    find: (site, hostname) => {
      const [row] = hosts.get(nameRow(site, hostname)) ?? hosts.get(nameRow('', hostname)) ?? [];
      return row && readRow(row);
    },
  };
}

const nameRow = (site = '', host = ''): string => JSON.stringify([site, host.toLowerCase()]);

const findRepeatedRows = (
  groups: ReadonlyMap<string, readonly TableRow[]>,
  what: string,
): readonly TableProblem[] =>
  [...groups.values()].flatMap(([first, ...others]) =>
    others.map(({ line }) => ({
      line,
      problem: `has the ${what} of line ${first?.line ?? 1} again`,
    })),
  );

function findFaults({ line, cells }: TableRow): readonly TableProblem[] {
  const mac = cells.get('bootMACAddress') ?? '';
  return [
    ...((cells.get('host') ?? '') === ''
      ? [{ line, problem: 'names no host in the column "host"' }]
      : []),
    ...(mac === '' || parseMacAddress(mac) !== undefined
      ? []
      : [{ line, problem: `bootMACAddress is not a MAC address, such as ${MAC_FORM}` }]),
  ];
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
