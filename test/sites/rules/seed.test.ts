import { expect, it } from 'vitest';
import { createRedaction } from '../../../src/base/text/redact.ts';
import { checkSite } from '../../../src/sites/check.ts';
import {
  createSiteInput,
  tell,
  TEST_EPOCH,
  writeInstallConfig,
} from '../../support/site-inputs.ts';

const SEED = { version: '4.20.3', nodeAddresses: [], machineNetworks: [], hasProxy: false };
const FOUR = '192.0.2.0/24';
const SIX = '2001:db8::/64';
const PROXY = { proxy: 'proxy: {httpProxy: "http://proxy.example:3128"}' };

const networks = (...cidrs: readonly string[]) => ({
  networking: `networking: {machineNetwork: [${cidrs.map((cidr) => `{cidr: "${cidr}"}`).join()}]}`,
});

const STOPS = 'so the node stops if its site has';

/* Of validateIPAndMachineNetworkConsistency and setProxyAndProxyStatus in lifecycle-agent. */
it.each([
  ['the same address', { nodeAddresses: ['10.0.0.5'] }, networks(FOUR), []],
  ['the same two', { nodeAddresses: ['10.0.0.5', 'fd00::5'] }, networks(FOUR, SIX), []],
  [
    'one address',
    { nodeAddresses: ['10.0.0.5'] },
    networks(FOUR, SIX),
    [
      `6:38 networking.machineNetwork[0].cidr: the seed has 1 address (IPv4), ${STOPS} 2 (IPv4, IPv6)`,
    ],
  ],
  [
    'another order of families',
    { nodeAddresses: ['fd00::5', '10.0.0.5'] },
    networks(FOUR, SIX),
    [
      `6:38 networking.machineNetwork[0].cidr: the seed has 2 addresses (IPv6, IPv4), ${STOPS} 2 (IPv4, IPv6)`,
    ],
  ],
  [
    'another family of its network',
    { nodeAddresses: ['10.0.0.5'], machineNetworks: ['fd00::/64'] },
    networks(FOUR),
    [
      `6:38 networking.machineNetwork[0].cidr: the seed has 1 machine network (IPv6), ${STOPS} 1 (IPv4)`,
    ],
  ],
  ['an older version', { version: '4.19.9', nodeAddresses: ['10.0.0.5'] }, networks(SIX), []],
  ['no addresses that are known', {}, networks(FOUR, SIX), []],
  ['an address that is none', { nodeAddresses: ['somewhere'] }, networks(FOUR), []],
  ['a proxy, as the site', { hasProxy: true }, PROXY, []],
  ['no proxy', {}, PROXY, [`9:8 proxy: the seed was made without a proxy, ${STOPS} one`]],
  [
    'a proxy that the site has not',
    { hasProxy: true },
    {},
    [`1:1 proxy: Required value: the seed was made with a proxy, ${STOPS} none`],
  ],
] as const)('a site is compared with a seed of %s', (...[, seed, changed, problems]) => {
  const files = { 'install-config.yaml': writeInstallConfig(changed) };
  const options = { epoch: TEST_EPOCH, redaction: createRedaction(), seed: { ...SEED, ...seed } };
  expect(tell(checkSite(createSiteInput(files), options).problems)).toEqual(problems);
});
