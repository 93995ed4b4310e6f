import { ConfigError } from '../../base/errors.ts';
import { suggestName } from '../../base/text/words.ts';
import { readCsvTable } from '../../table/index.ts';
import { identify, readBody, type Exchange, type Service } from '../context.ts';

/* Owns the tables of hosts that people paste from a sheet, and the words of their columns. */

/** Members of a host, each with the names that its column may have, apart from case, blanks, `_` and `-`. */
const COLUMNS = {
  name: 'name host hostname server',
  mac: 'mac mac1 macaddress macaddress1',
  mac2: 'mac2 macaddress2',
  port: 'port port1 interface interface1 nic nic1 device device1',
  port2: 'port2 interface2 nic2 device2',
  address: 'address ip ipaddress ipv4 ipv4address',
  prefix: 'prefix prefixlength netmask subnetmask mask subnet',
  gateway: 'gateway defaultgateway gw',
  dns: 'dns dnsserver dnsservers nameserver nameservers',
  search: 'search searchdomain searchdomains domain dnsdomain',
  vlan: 'vlan vlanid',
  bond: 'bond bondmode',
  mtu: 'mtu',
  address6: 'address6 ipv6 ipv6address',
  prefix6: 'prefix6 ipv6prefix ipv6prefixlength',
  gateway6: 'gateway6 ipv6gateway',
} as const;

const MEMBERS: ReadonlyMap<string, string> = new Map(
  Object.entries(COLUMNS).flatMap(([member, names]) =>
    names.split(' ').map((name) => [name, member] as const),
  ),
);

type TableProblem = { readonly row: number; readonly column?: string; readonly message: string };

type HostTable = {
  /** Texts of the cells by member, with the row of the sheet, from 1. */
  readonly hosts: readonly { readonly row: number; readonly values: object }[];
  /** Header of each member, as it is written. */
  readonly columns: Readonly<Record<string, string>>;
  readonly problems: readonly TableProblem[];
};

/** Answers `sealiftReadHostTable`. */
export async function readHostTable(service: Service, exchange: Exchange): Promise<Response> {
  await identify(service, exchange);
  const { text } = await readBody<{ readonly text: string }>(
    service,
    exchange,
    'host-table-params',
  );
  return exchange.json(readHosts(text));
}

/** Reads a table of hosts with a header row, in CSV or TSV. */
function readHosts(text: string): HostTable {
  const columns: Record<string, string> = {};
  const unknown: string[] = [];
  const nameColumn = (written: string): string => {
    const member = MEMBERS.get(written.toLowerCase().replaceAll(/[\s_-]/g, ''));
    if (member === undefined) unknown.push(written);
    else columns[member] ??= written;
    return member ?? 'unknown';
  };
  const { rows, rowProblems, tableProblems, headerLine = 1 } = readTable(text, nameColumn);
  const header = [
    ...unknown.map((column) => ({ row: headerLine, column, message: explainUnknown(column) })),
    ...(unknown.length > 0 ? [] : tableProblems.map(toProblem)),
  ];
  const isWrong = header.length > 0 || tableProblems.length > 0;
  if (!isWrong && columns['mac'] === undefined) {
    header.push({
      row: headerLine,
      message: 'there is no column "mac": hosts are told apart by it',
    });
  }
  const hosts = header.length > 0 ? [] : rows;
  return {
    hosts: hosts.map(({ line, cells }) => ({ row: line, values: Object.fromEntries(cells) })),
    columns,
    problems: [...header, ...rowProblems.map(toProblem)],
  };
}

const toProblem = ({ line, problem }: { readonly line: number; readonly problem: string }) => ({
  row: line,
  message: problem,
});

function explainUnknown(column: string): string {
  const guess = suggestName(column.toLowerCase(), [...MEMBERS.keys()]);
  const known = `known are ${Object.keys(COLUMNS).join(', ')}`;
  return `this column is not known: ${guess ?? known}`;
}

function readTable(text: string, nameColumn: (written: string) => string) {
  try {
    return readCsvTable(text, { nameColumn });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const problem = { line: 1, problem: error.message };
    return { rows: [], rowProblems: [], tableProblems: [problem], headerLine: 1 };
  }
}
