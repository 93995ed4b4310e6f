import { type BondFinding, refuseBondOptions } from './bond.ts';
import { type Keyfile, normaliseKeyfile, parseKeyfile } from './keyfile.ts';
import { isDuid } from './judge.ts';
import type { NetworkFinding } from './values.ts';

/*
 * This file owns the rules by which NetworkManager refuses a profile: a host with such a profile is
 * offline, also if nmstate made it.
 */

/** The problems for which NetworkManager refuses profiles that nmstate made. */
export const judgeProfiles = (profiles: readonly Keyfile[]): readonly NetworkFinding[] =>
  profiles.flatMap((profile) => {
    const owner = profile.name.replace(/\.nmconnection$/, '');
    const problems = judgeProfile(readSections(profile));
    return problems.map(([key, why]) => ({
      path: '',
      owner,
      problem: `NetworkManager refuses the profile that nmstatectl makes: ${key} ${why}`,
    }));
  });

type Values = Readonly<Record<string, string>>;
type Sections = ReadonlyMap<string, Values>;

const readSections = ({ content }: Keyfile): Sections =>
  new Map(parseKeyfile(content).map(({ name, entries }) => [name, Object.fromEntries(entries)]));

function judgeProfile(sections: Sections): readonly BondFinding[] {
  const bond = sections.get('bond');
  return [
    ...(bond ? refuseBondOptions(bond['mode'] ?? '', bond) : []),
    ...['ipv4', 'ipv6'].flatMap((name) => judgeAddresses(name, sections.get(name) ?? {})),
  ];
}

/** nm-setting-ip4-config.c and nm-setting-ip6-config.c, verify. */
function judgeAddresses(section: string, values: Values): readonly BondFinding[] {
  const { method, 'dhcp-duid': duid } = values;
  const hasAddress = Object.keys(values).some((key) => /^address(?:es)?\d*$/.test(key));
  const names = ['dns', 'dns-search'].filter((key) => (values[key] ?? '') !== '');
  const isWithout = method === 'disabled' || method === 'link-local';
  return [
    ...(method === 'manual' && !hasAddress
      ? [[`${section}.method`, 'is manual without an address'] as const]
      : []),
    ...(isWithout
      ? names.map(
          (key) => [`${section}.${key}`, `is not allowed with the method ${method}`] as const,
        )
      : []),
    ...(duid !== undefined && !isDuid(duid)
      ? [[`${section}.dhcp-duid`, `"${duid}" is not a DUID`] as const]
      : []),
  ];
}

/** nmstate before 2.2.60 writes 0 for the kernel's metric of IPv6 routes, and nmstate escapes no text. */
const withoutDefault = (key: string, value: string): string =>
  /^ipv6\.route\d+$/.test(key)
    ? value.replace(/,0$/, ',1024')
    : value.replaceAll('\\\\', '\\').replace(/^\\s/, '');

/** Names the first differences between our profiles and those of the installed nmstate. */
export function explainDifferences(
  ours: readonly Keyfile[],
  theirs: readonly Keyfile[],
): readonly NetworkFinding[] {
  const [mine, other] = [ours, theirs].map(listEntries);
  const names = [...new Set([...(mine?.keys() ?? []), ...(other?.keys() ?? [])])];
  const differing = names.filter((key) => mine?.get(key) !== other?.get(key)).slice(0, MOST_NAMED);
  return differing.map((key) => ({
    path: '',
    problem: `nmstatectl would write ${key} as ${show(other?.get(key))}; sealift writes ${show(mine?.get(key))}`,
  }));
}

const MOST_NAMED = 5;

const show = (value: string | undefined): string =>
  value === undefined ? 'nothing' : `"${value}"`;

/** `eth0.nmconnection ipv4.method` with its value. */
const listEntries = (profiles: readonly Keyfile[]): ReadonlyMap<string, string> =>
  new Map(
    profiles.map(normaliseKeyfile).flatMap(({ name, content }) =>
      parseKeyfile(content).flatMap((section) =>
        section.entries.map(([key, value]) => {
          const at = `${section.name}.${key}`;
          return [`${name} ${at}`, withoutDefault(at, value)] as const;
        }),
      ),
    ),
  );
