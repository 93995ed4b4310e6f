import type { DocumentProblem } from '../../base/errors.ts';
import { type Cidr, contains, parseAddress } from '../../base/ip-address.ts';
import { type ReportProblem, invalid, required, tooMany } from '../../shape/report.ts';
import { resolveNetworks } from '../rules/networks.ts';
import type { WrittenAgentInstall, WrittenBaremetal } from './documents.ts';

/*
 * Owns the rules of virtual addresses: those of openshift-install, and those that only assisted-service has,
 * with its ids (assisted-service: internal/network, internal/cluster/validator.go).
 */

type Lists = { readonly api: readonly string[]; readonly ingress: readonly string[] };

/** The addresses, from the lists or from the older single members. */
export const listVips = ({
  apiVIP,
  apiVIPs,
  ingressVIP,
  ingressVIPs,
}: WrittenBaremetal): Lists => ({
  api: choose(apiVIPs, apiVIP),
  ingress: choose(ingressVIPs, ingressVIP),
});

const choose = (list: readonly string[] = [], single = ''): readonly string[] =>
  list.length > 0 ? list : [single].filter((each) => each !== '');

export function checkVips(
  report: ReportProblem,
  { platform, networking }: WrittenAgentInstall,
): readonly DocumentProblem[] {
  const baremetal = platform?.baremetal;
  if (!baremetal) return [];
  const { api, ingress } = listVips(baremetal);
  const isUserManaged = baremetal.loadBalancer?.type === 'UserManaged';
  const machine = resolveNetworks(networking).machine.flatMap(({ cidr }) => (cidr ? [cidr] : []));
  const rules = { machine, isUserManaged };
  return [
    ...checkList(report, { name: 'apiVIPs', what: 'API', list: api }, rules),
    ...checkList(report, { name: 'ingressVIPs', what: 'Ingress', list: ingress }, rules),
    ...checkPairs(report, { api, ingress }, isUserManaged),
  ];
}

type VipList = {
  readonly name: 'apiVIPs' | 'ingressVIPs';
  readonly what: 'API' | 'Ingress';
  readonly list: readonly string[];
};

type Rules = { readonly machine: readonly Cidr[]; readonly isUserManaged: boolean };

const pathOf = (name: string, index?: number): string =>
  `platform.baremetal.${name}${index === undefined ? '' : `[${index}]`}`;

const MOST = 2;

function checkList(
  report: ReportProblem,
  { name, what, list }: VipList,
  { machine, isUserManaged }: Rules,
): readonly DocumentProblem[] {
  if (list.length === 0) {
    return [report(pathOf(name), required(`must specify at least one VIP for the ${what}`))];
  }
  if (list.length > MOST) return [report(pathOf(name), tooMany(list.length, MOST))];
  const id = `validation.${what.toLowerCase()}-vips-valid`;
  return [
    ...checkFamilies(report, { name, what, list }),
    ...list.flatMap((text, index) => {
      const address = parseAddress(text);
      if (!address)
        return [
          report(pathOf(name, index), invalid(text, `${JSON.stringify(text)} is not a valid IP`)),
        ];
      if (isUserManaged) return [];
      const own = machine[index] ?? machine[0];
      const why = explainPlace(text, own);
      return why === undefined
        ? []
        : [
            report(pathOf(name, index), invalid(text, `${what.toLowerCase()}-vip ${why}`), {
              code: id,
            }),
          ];
    }),
  ];
}

/** The i-th address is in the i-th machine network: assisted-service is stricter than the installer. */
function explainPlace(text: string, own: Cidr | undefined): string | undefined {
  const address = parseAddress(text);
  if (address === undefined || own === undefined) return undefined;
  const network = `machine-network-cidr <${own.text}>`;
  if (!contains(own, address)) return `<${text}> does not belong to ${network}`;
  if (own.family === 4 && own.prefix < 31 && address.value === own.last) {
    return `<${text}> is the broadcast address of ${network}`;
  }
  return address.value === own.first && own.first !== own.last
    ? `<${text}> is the network address of ${network}`
    : undefined;
}

function checkFamilies(
  report: ReportProblem,
  { name, what, list }: VipList,
): readonly DocumentProblem[] {
  const families = new Set(list.map((text) => parseAddress(text)?.family));
  if (list.length !== MOST || families.size === MOST || families.has(undefined)) return [];
  const why = `If two ${what} VIPs are given, one must be an IPv4 address, the other an IPv6`;
  return [report(pathOf(name), invalid(list.join(', '), why))];
}

function checkPairs(
  report: ReportProblem,
  { api, ingress }: Lists,
  isUserManaged: boolean,
): readonly DocumentProblem[] {
  const isUneven = api.length > 0 && ingress.length > 0 && api.length !== ingress.length;
  const counts =
    'configuration must include the same number of apiVIPs ' +
    `(got ${api.length}) and ingressVIPs (got ${ingress.length})`;
  const others = new Set(ingress);
  const both = isUserManaged ? [] : api.filter((text) => others.has(text));
  return [
    ...(isUneven ? [report(pathOf('apiVIPs'), counts)] : []),
    ...both.map((text) =>
      report(pathOf('apiVIPs'), invalid(text, 'VIP for API must not be one of the Ingress VIPs')),
    ),
  ];
}
