/** A document with a scalar in one place, and the place of the result in the profiles. */
type Place = { readonly document: (scalar: string) => string; readonly result: RegExp };

const withEth0 = (members: string): string => `interfaces:\n- name: eth0\n${members}`;
const ADDRESS = '  ipv4: {enabled: true, address: [{ip: 192.0.2.10, prefix-length: 24}]}\n';

export const SCALAR_PLACES: Readonly<Record<string, Place>> = {
  mtu: { document: (scalar) => withEth0(`  mtu: ${scalar}\n`), result: /^mtu=(.*)$/m },
  enabled: {
    document: (scalar) => withEth0(`  ipv4: {enabled: ${scalar}, dhcp: true}\n`),
    result: /^\[ipv4\][^[]*^method=(.*)$/m,
  },
  mac: {
    document: (scalar) => withEth0(`  mac-address: ${scalar}\n`),
    result: /^cloned-mac-address=(.*)$/m,
  },
  description: {
    document: (scalar) => withEth0(`  description: ${scalar}\n`),
    result: /^nmstate\.interface\.description=(.*)$/m,
  },
  prefix: {
    document: (scalar) =>
      withEth0(`  ipv4: {enabled: true, address: [{ip: 192.0.2.10, prefix-length: ${scalar}}]}\n`),
    result: /^address0=.*\/(.*)$/m,
  },
  mode: {
    document: (scalar) =>
      `interfaces:\n- name: bond0\n  type: bond\n  link-aggregation: {mode: ${scalar}, port: []}\n`,
    result: /^mode=(.*)$/m,
  },
  metric: {
    document: (scalar) =>
      withEth0(
        `${ADDRESS}routes:\n  config:\n  - destination: 0.0.0.0/0\n    next-hop-address: 192.0.2.1\n` +
          `    next-hop-interface: eth0\n    metric: ${scalar}\n`,
      ),
    result: /^route0=.*,(.*)$/m,
  },
  search: {
    document: (scalar) =>
      withEth0(`${ADDRESS}dns-resolver:\n  config: {server: [192.0.2.1], search: [${scalar}]}\n`),
    result: /^dns-search=(.*)$/m,
  },
};

const NO = 'refused';
const NONE = 'none';

/**
 * Place, scalar, and its result in the profiles: of a document of nmstate, and of one in a resource of
 * Kubernetes or in the configuration of a site, whose scalars Go reads first. The judge of nmstatectl asks
 * the same.
 */
export const SCALARS: readonly (readonly [
  place: string,
  scalar: string,
  ofNmstate: string,
  ofGo: string,
])[] = [
  ['mtu', '1500', '1500', '1500'],
  ['mtu', '"1500"', '1500', '1500'],
  ['mtu', '+1500', '1500', '1500'],
  ['mtu', '010000', '10000', '4096'],
  ['mtu', '0b111', '7', '7'],
  ['mtu', '0o17', '15', '15'],
  ['mtu', '"0o17"', NO, NO],
  ['mtu', '0x5dc', '1500', '1500'],
  ['mtu', '"0x5dc"', '1500', '1500'],
  ['mtu', '0X5dc', NO, '1500'],
  ['mtu', '1_500', NO, '1500'],
  ['mtu', '1500.0', NO, '1500'],
  ['mtu', '"1500.0"', NO, NO],
  ['mtu', '1.5e3', NO, '1500'],
  ['mtu', '1e3', NO, '1000'],
  ['mtu', '1.5', NO, NO],
  ['mtu', '1500.', NO, '1500'],
  ['mtu', '-1', NO, NO],
  ['mtu', '12:30', NO, NO],
  ['mtu', 'yes', NO, NO],
  ['mtu', 'true', NO, NO],
  ['mtu', '~', NO, NO],
  ['mtu', '.inf', NO, NO],
  ['mtu', '""', NO, NO],
  ['mtu', '1e400', NO, NO],
  ['mtu', '18446744073709551616', NO, NO],
  ['enabled', 'true', 'auto', 'auto'],
  ['enabled', 'yes', 'auto', 'auto'],
  ['enabled', 'y', 'auto', 'auto'],
  ['enabled', 'On', 'auto', 'auto'],
  ['enabled', '1', 'auto', 'auto'],
  ['enabled', '"1"', 'auto', 'auto'],
  ['enabled', '0b1', 'auto', 'auto'],
  ['enabled', '1.0', NO, 'auto'],
  ['enabled', '2', NO, NO],
  ['enabled', 'off', 'disabled', 'disabled'],
  ['enabled', '00', NO, 'disabled'],
  ['enabled', '~', NO, NO],
  ['mac', '02:00:00:00:00:01', '02:00:00:00:00:01', '02:00:00:00:00:01'],
  ['mac', '2:0:0:0:0:1', '02:00:00:00:00:01', '02:00:00:00:00:01'],
  ['mac', '02-00-00-00-00-0a', '02:00:00:00:00:0A', '02:00:00:00:00:0A'],
  ['mac', '0200.0000.0001', '02:00:00:00:00:01', '02:00:00:00:00:01'],
  ['mac', '020000000001', '02:00:00:00:00:01', NO],
  ['mac', '"020000000001"', '02:00:00:00:00:01', '02:00:00:00:00:01'],
  ['mac', '112233445566', NO, NO],
  ['mac', '""', NONE, NONE],
  ['mac', '~', NONE, NONE],
  ['description', 'yes', 'yes', NO],
  ['description', '"yes"', 'yes', 'yes'],
  ['description', '010000', '010000', NO],
  ['description', '1_000', '1_000', NO],
  ['description', '2026-11-27', '2026-11-27', '2026-11-27'],
  ['description', '12:30', '12:30', '12:30'],
  ['description', '1500', NO, NO],
  ['description', '1.5', NO, NO],
  ['description', '"1.5"', '1.5', '1.5'],
  ['description', '0b11', NO, NO],
  ['description', '1e400', '1e400', '1e400'],
  ['description', '~', NONE, NONE],
  ['prefix', '24', '24', '24'],
  ['prefix', '24.0', NO, '24'],
  ['prefix', '030', '30', '24'],
  ['prefix', '"24"', '24', '24'],
  ['mode', '1', 'active-backup', 'active-backup'],
  ['mode', '"1"', 'active-backup', 'active-backup'],
  ['mode', '1.0', NO, 'active-backup'],
  ['mode', '~', NO, NO],
  ['metric', '7', '7', '7'],
  ['metric', '7.0', NO, '7'],
  ['metric', '0b111', '7', '7'],
  ['metric', '~', NO, NO],
  ['search', '"1.5"', '1.5', '1.5'],
  ['search', '1.5', '1.5', '1.5'],
  ['search', '1500', '1500', '1500'],
  ['search', 'true', 'true', 'true'],
];

/** The result in profiles; `none` if they do not have it. */
export const resultOf = (
  place: string,
  profiles: readonly { readonly content: string }[],
): string =>
  SCALAR_PLACES[place]?.result.exec(profiles.map(({ content }) => content).join('\n'))?.[1] ?? NONE;
