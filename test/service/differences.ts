import type { Differences } from '../judges/find-judge.ts';

/* Owns the requests of the recording that sealift answers otherwise than the real service, with reasons. */

const TYPE = 'this service has disconnected ISOs only';
const KEYS =
  'sshd of every release takes such keys; the real service refuses what it does not expect';
const AUTH = 'no image can be pulled with such an entry, which would come to light at the site';

/** With nmstate installed, as the real service has it. */
export const DIFFERENCES: Differences = {
  '35 cluster trailing garbage': 'a fault of the real service: it looks at no byte after the JSON',
  '69 POST clusters':
    'this service installs nothing itself; the reason names the call for disconnected clusters',
  '73 root': 'the page is there',
  '88 ie ps no auth field': AUTH,
  '96 ie ps username/password': AUTH,
  '101 ie ssh trailing nl': 'a file with a key ends with a newline',
  '103 ie ssh options': KEYS,
  '105 ie ssh comment line': KEYS,
  '106 ie ssh sk': KEYS,
  '109 ie ntp space': 'a person types a blank after a comma; it is cut',
  '128 ie proxy port 99999': 'no host has this port',
  '129 ie type full': TYPE,
  '130 ie type minimal': TYPE,
  '157 ie kargs long':
    'the area of the medium has no room; the real service answers so at the download',
  '164 ie rdv 0.0.0.0': 'no host has this address',
  '181 ie net dup mac': 'two hosts with one MAC address get the network of either',
  '194 ie net absent': 'a network that configures no interface is left out; the reason says so',
  '203 ie net route unknown iface':
    'nmstate drops a route by an interface that is not in the document',
  '236 patch type': TYPE,
  '270 files ipxe-script':
    'the medium cannot boot from the network: its registry is read from the mounted ISO',
};

const NMSTATE = 'needs nmstate, which the reason names; with it the network is accepted';

/** The same requests where nmstate is not installed: only networks that are translated here are accepted. */
export const WITHOUT_NMSTATE: Differences = {
  '186 ie net unknown type': NMSTATE,
  '193 ie net ovs': NMSTATE,
  '195 ie net lldp': NMSTATE,
  '196 ie net ethtool': NMSTATE,
  '197 ie net 802.1x': NMSTATE,
  '198 ie net route-rules': NMSTATE,
  '199 ie net sriov': NMSTATE,
  '204 ie net hostname': NMSTATE,
  '205 ie net vrf': NMSTATE,
  '206 ie net dummy': NMSTATE,
  '207 ie net infiniband': NMSTATE,
};
