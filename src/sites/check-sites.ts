import type { FilePlace, Problem } from '../base/errors.ts';
import type { FactKind, SiteFact, SiteFacts } from './site-facts.ts';

/** Something that a site shares with another and may not. It names the other site, its file and its line. */
export type AcrossFinding = Problem<FilePlace> & {
  /** The site that it is told of; the other one gets a finding of its own. */
  readonly name: string;
};

type Holder = { readonly name: string; readonly fact: SiteFact };

const WORDS: Readonly<Record<FactKind, string>> = {
  'cluster': 'cluster name and domain',
  'hostname': 'hostname',
  'address': 'node address',
  'mac': 'MAC address',
  'cluster id': 'cluster id',
};

/**
 * What occurs in more than one site: names and domains of clusters, hostnames, addresses of nodes, MAC
 * addresses, cluster ids. Takes time and memory in proportion to the facts. What sites may share is
 * warned of: behind address translation, say, every site may have the same addresses.
 */
export function checkAcrossSites(
  sites: Iterable<SiteFacts>,
  shared: ReadonlySet<FactKind> = new Set(),
): readonly AcrossFinding[] {
  const holders = new Map<string, Holder[]>();
  for (const { name, facts } of sites) {
    for (const fact of facts) {
      const key = `${fact.kind} ${fact.value}`;
      const known = holders.get(key);
      if (!known) holders.set(key, [{ name, fact }]);
      else if (known.at(-1)?.name !== name) known.push({ name, fact });
    }
  }
  return [...holders.values()]
    .filter((all) => all.length > 1)
    .flatMap(tell)
    .map(({ kind, ...finding }) =>
      shared.has(kind)
        ? { ...finding, severity: 'warning' }
        : { ...finding, severity: 'error', ...hintAt(kind) },
    );
}

const hintAt = (kind: FactKind): { readonly hint?: string } =>
  kind === 'address' || kind === 'hostname'
    ? { hint: `where that is meant, add --allow-shared ${kind}` }
    : {};

type Told = Omit<AcrossFinding, 'severity'> & { readonly kind: FactKind };

/** The first is told of the second, and every other of the first: one line for each, however many. */
const tell = (holders: readonly Holder[]): readonly Told[] =>
  holders.flatMap((holder, index) => {
    const other = holders[index === 0 ? 1 : 0];
    return other ? [createFinding(holder, other, holders.length)] : [];
  });

function createFinding({ name, fact }: Holder, other: Holder, count: number): Told {
  const { kind, value, file, line } = fact;
  const more = count > 2 ? `, and ${count - 2} more` : '';
  const where = `${other.name} (${other.fact.file}:${other.fact.line}${more})`;
  const problem = `${WORDS[kind]} ${value} of ${name} is that of ${where} too`;
  return { name, kind, code: 'sites.shared', file, line, problem };
}
