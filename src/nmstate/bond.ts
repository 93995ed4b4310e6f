/*
 * This file owns the rules for the options of a bond: those of nmstate (ifaces/bond.rs) and of NetworkManager
 * (nm-setting-bond.c, verify and _bond_option_unsupp_mode), whose host is offline if a profile breaks one.
 */

/** Options by name, as a profile has them. */
export type OptionsOfBond = Readonly<Record<string, string | number | undefined>>;

export type BondFinding = readonly [option: string, why: string];

const isOn = (value: string | number | undefined): boolean => Number(value ?? 0) > 0;
const isGiven = (value: string | number | undefined): boolean => (value ?? '') !== '';

const BACKUP = ['active-backup', 'balance-tlb', 'balance-alb'];
const WITHOUT_ARP = ['802.3ad', 'balance-tlb', 'balance-alb'];

/** Options for which nmstate or NetworkManager refuses the bond. */
export function refuseBondOptions(mode: string, options: OptionsOfBond): readonly BondFinding[] {
  const { primary, lacp_rate: rate, arp_missed_max: missed } = options;
  return [
    ...(isGiven(primary) && !BACKUP.includes(mode)
      ? [['primary', `is only valid for the modes ${BACKUP.join(', ')}`] as const]
      : []),
    ...(isGiven(rate) && mode !== '802.3ad'
      ? [['lacp_rate', 'is only valid for the mode 802.3ad'] as const]
      : []),
    ...(isOn(missed) && WITHOUT_ARP.includes(mode)
      ? [['arp_missed_max', `is not valid for the mode ${mode}`] as const]
      : []),
    ...refuseMonitors(mode, options),
    ...refuseNotifications(options),
    ...refuseSystem(options),
  ];
}

function refuseMonitors(mode: string, options: OptionsOfBond): readonly BondFinding[] {
  const { miimon, arp_interval: interval } = options;
  const targets = ['arp_ip_target', 'ns_ip6_target'].filter((name) => isGiven(options[name]));
  if (!isOn(interval)) {
    return [
      ...refuseDelays(options),
      ...targets.map((name) => [name, 'needs arp_interval above 0'] as const),
    ];
  }
  return [
    ...refuseDelays(options),
    ...(WITHOUT_ARP.includes(mode)
      ? [['arp_interval', `is not valid for the mode ${mode}`] as const]
      : []),
    ...(isOn(miimon)
      ? [['arp_interval', 'excludes miimon: a bond has one way to watch its links'] as const]
      : []),
    ...(targets.length === 0 ? [['arp_interval', 'needs arp_ip_target'] as const] : []),
  ];
}

const DELAYS = ['updelay', 'downdelay'];

const refuseDelays = (options: OptionsOfBond): readonly BondFinding[] =>
  options['miimon'] === undefined || isOn(options['miimon'])
    ? []
    : DELAYS.filter((name) => isOn(options[name])).map((name) => [name, 'needs miimon above 0']);

function refuseNotifications({
  num_grat_arp: arp,
  num_unsol_na: na,
}: OptionsOfBond): readonly BondFinding[] {
  const differ = arp !== undefined && na !== undefined && Number(arp) !== Number(na);
  return differ ? [['num_unsol_na', 'must equal num_grat_arp']] : [];
}

/** The kernel refuses group addresses and zero (bond_option_ad_actor_system_set). */
function refuseSystem({ ad_actor_system: system }: OptionsOfBond): readonly BondFinding[] {
  if (system === undefined || isAddressOfHost(String(system))) return [];
  return [['ad_actor_system', 'must be the MAC address of one host']];
}

/** True unless a MAC address is zero or that of a group (IEEE 802, 8.2.2). */
export const isAddressOfHost = (mac: string): boolean =>
  !/^(?:00:)+00$/.test(mac) && (Number.parseInt(mac.slice(0, 2), 16) & 1) === 0;

/** Modes in which an option has an effect; NetworkManager drops it in others. */
const MODES: Readonly<Record<string, readonly string[]>> = {
  ad_actor_sys_prio: ['802.3ad'],
  ad_actor_system: ['802.3ad'],
  ad_user_port_key: ['802.3ad'],
  arp_validate: ['balance-rr', 'active-backup', 'balance-xor', 'broadcast'],
  packets_per_slave: ['balance-rr'],
  tlb_dynamic_lb: ['balance-tlb', 'balance-alb'],
};

/** Options without effect. */
export function warnOfBondOptions(mode: string, options: OptionsOfBond): readonly BondFinding[] {
  const dropped = Object.entries(MODES).filter(
    ([name, modes]) => options[name] !== undefined && !modes.includes(mode),
  );
  const lonely = DELAYS.filter((name) => isOn(options[name]) && options['miimon'] === undefined);
  return [
    ...dropped.map(
      ([name, modes]) => [name, `has an effect only in the mode ${modes.join(' or ')}`] as const,
    ),
    ...lonely.map((name) => [name, 'has an effect only with miimon, which is not given'] as const),
  ];
}
