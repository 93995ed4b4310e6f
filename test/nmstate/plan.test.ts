import { describe, expect, it } from 'vitest';
import { judgeNetwork, planHosts, planNetwork, profilesOf } from '../../src/nmstate/plan.ts';
import type { MadeProfiles, NetworkTool } from '../../src/nmstate/tool.ts';
import { formatFinding } from '../../src/nmstate/values.ts';
import { parse } from '../../src/shape/parse-text.ts';
import { eth0, ipv4, STATIC } from '../support/network-states.ts';
import { renderKeyfiles } from '../support/render-profiles.ts';

const { signal } = new AbortController();
const toolOf = (made: MadeProfiles): NetworkTool => ({ makeProfiles: () => Promise.resolve(made) });
const plan = (networkConfig: string, made?: MadeProfiles, isApplied = false) =>
  planNetwork({ networkConfig, interfaces: [] }, { tool: made && toolOf(made), signal, isApplied });
const tell = (findings: Parameters<typeof formatFinding>[0][]): readonly string[] =>
  findings.map((finding) => formatFinding(finding));

const DOCUMENT = ipv4(STATIC);
const OVS = 'interfaces: [{name: br0, type: ovs-bridge}]';
const profileOf = (section: string): MadeProfiles => ({
  profiles: [{ name: 'br0.nmconnection', content: `[connection]\nid=br0\n\n${section}\n` }],
});

describe('a network that is translated here', () => {
  it('has the same profiles and no finding if nmstatectl agrees', async () => {
    const alone = await plan(DOCUMENT);
    const judged = await plan(DOCUMENT, { profiles: renderKeyfiles(DOCUMENT) });
    expect(judged.profiles).toEqual(alone.profiles);
    expect(judged.verdict).toEqual(alone.verdict);
    expect(judged.ofTool).toEqual({ problems: [], warnings: [] });
  });

  it('is refused with the words of nmstatectl if that refuses it', async () => {
    const { verdict, profiles } = await plan(DOCUMENT, { problem: 'no such thing' });
    expect(tell([...verdict.problems])).toEqual(['no such thing']);
    expect(profiles).toEqual([]);
  });

  it('is warned of, with the setting, if nmstatectl would write another profile', async () => {
    const other = renderKeyfiles(DOCUMENT).map(({ name, content }) => ({
      name,
      content: content.replace('192.0.2.10/24', '192.0.2.11/24'),
    }));
    const { ofTool, profiles } = await plan(DOCUMENT, { profiles: other });
    expect(tell([...ofTool.warnings])).toEqual([
      'nmstatectl would write eth0.nmconnection ipv4.address0 as "192.0.2.11/24"; sealift writes "192.0.2.10/24"',
    ]);
    expect(profiles).toEqual(renderKeyfiles(DOCUMENT));
  });

  it('is only warned of if the answer of nmstatectl cannot be read', async () => {
    const { verdict, ofTool } = await plan(DOCUMENT, { problem: 'no YAML', isUnread: true });
    expect(verdict.problems).toEqual([]);
    expect(tell([...ofTool.warnings])).toEqual(['no YAML']);
  });
});

describe('a network that only nmstate translates', () => {
  it('has the profiles of nmstatectl, in the form of the installer', async () => {
    const { profiles, verdict } = await plan(OVS, profileOf('[ipv4]\nmethod=auto'));
    expect(verdict.problems).toEqual([]);
    expect(profiles[0]?.content).toContain('autoconnect-priority=1\n\n[ipv4]\nmethod=auto\n');
  });

  it.each([
    ['[ipv4]\nmethod=manual', 'ipv4.method is manual without an address'],
    [
      '[ipv6]\nmethod=link-local\ndns=fd00::1',
      'ipv6.dns is not allowed with the method link-local',
    ],
    ['[ipv6]\nmethod=auto\ndhcp-duid=foo', 'ipv6.dhcp-duid "foo" is not a DUID'],
    ['[bond]\nmode=802.3ad\nprimary=eth0', 'primary is only valid for the modes active-backup'],
  ])('is refused if NetworkManager refuses the profile of nmstatectl: %j', async (text, why) => {
    const { verdict } = await plan(OVS, profileOf(text));
    expect(tell([...verdict.problems])[0]).toContain(why);
    expect(tell([...verdict.problems])[0]).toMatch(/^interface "br0": NetworkManager refuses/);
  });

  it('is refused without nmstatectl, with both ways out', async () => {
    const { verdict } = await plan(OVS);
    expect(verdict.problems).toMatchObject([
      {
        owner: 'br0',
        hint: expect.stringMatching(/install nmstate.*applies the document itself/) as unknown,
      },
    ]);
  });

  it('is handed to a host that applies it, with nmstatectl and without it', async () => {
    const made = profileOf('[ipv4]\nmethod=auto');
    expect((await plan(OVS, undefined, true)).verdict.problems).toEqual([]);
    expect((await plan(OVS, made, true)).verdict.problems).toEqual([]);
  });
});

describe('planned hosts', () => {
  it('have warnings and problems with file, line, interface and member', async () => {
    const warned: string[] = [];
    const options = { signal, warn: (warning: string) => void warned.push(warning) };
    const host = {
      source: 'net.yaml',
      interfaces: [{ name: 'eth0', macAddress: '52:54:00:00:00:01' }],
    };
    const networkConfig = `${DOCUMENT}dns-resolver:\n  config:\n    server:\n    - 198.51.100.9\n`;
    await planHosts([{ ...host, networkConfig }], options);
    expect(warned).toEqual([
      'net.yaml:1: routes.config: there is no default route for IPv4',
      'net.yaml:7: dns-resolver.config.server[0]: no route leads to the name server 198.51.100.9',
    ]);
    const wrong = eth0('ipv4: {enabled: true}', 'mtu: x');
    await expect(planHosts([{ ...host, networkConfig: wrong }], options)).rejects.toMatchObject({
      code: 'nmstate.malformed',
      message: expect.stringContaining('net.yaml:4: interface "eth0": mtu: "x" is not') as unknown,
    });
  });
});

it.each(['02-00-00-00-00-01', '0200.0000.0001', '"020000000001"'])(
  'the MAC address %s reaches nmstatectl and nodes with colons',
  async (mac) => {
    const document = `interfaces: [{name: br0, type: ovs-bridge, mac-address: ${mac}}]\n`;
    const seen: string[] = [];
    const makeProfiles: NetworkTool['makeProfiles'] = (text) => {
      seen.push(text);
      return Promise.resolve({ profiles: [] });
    };
    await planNetwork(
      { networkConfig: document, interfaces: [] },
      { tool: { makeProfiles }, signal },
    );
    expect(seen).toEqual([
      'interfaces:\n- mac-address: "02:00:00:00:00:01"\n  name: br0\n  type: ovs-bridge\n',
    ]);
  },
);

describe('a map of MAC addresses', () => {
  const judge = (text: string, ...interfaces: { name: string; macAddress: string }[]) => {
    const { problems, warnings } = judgeNetwork(parse(text), { interfaces });
    return { problems: tell([...problems]), warnings: tell([...warnings]) };
  };
  const entry = (name: string, macAddress = '52:54:00:00:00:01') => ({ name, macAddress });

  it('has an entry for each Ethernet interface and port that has no name of systemd', () => {
    const ports =
      'interfaces: [{name: bond0, type: bond, link-aggregation: {mode: 1, port: [a0, eno1]}}]';
    const of = (name: string): string => `interface "${name}": `;
    const why = 'the MAC map has no entry for this interface';
    expect(judge(eth0(), entry('eth9')).problems).toEqual([`${of('eth0')}name: ${why}`]);
    expect(judge(ports, entry('eth9')).problems).toEqual([
      `${of('a0')}link-aggregation.port[0]: ${why}`,
    ]);
    const found = eth0('identifier: mac-address', 'mac-address: "52:54:00:00:00:01"');
    expect(judge(found, entry('eth9')).problems).toEqual([]);
  });

  it('is warned of if it names another interface or address than the document', () => {
    expect(judge(eth0(), entry('eth0'), entry('eth7', '52:54:00:00:00:02')).warnings).toContain(
      'the MAC map names "eth7", which is not in the document',
    );
    expect(judge(eth0('mac-address: "52:54:00:00:00:07"'), entry('eth0')).warnings).toContain(
      'interface "eth0": mac-address: the document has 52:54:00:00:00:07, but the MAC map 52:54:00:00:00:01',
    );
  });

  it.each(['01:00:5e:00:00:01', '00:00:00:00:00:00'])('has no address like %s', (macAddress) => {
    expect(judge(eth0(), entry('eth0', macAddress)).problems).toEqual([
      `interface "eth0": MAC map: no interface can have the address ${macAddress.toUpperCase()}`,
    ]);
  });

  it('has no address twice, in either spelling', () => {
    const twice = [entry('eth0', '52-54-00-00-00-0A'), entry('eth1', '52:54:00:00:00:0a')];
    expect(judge('interfaces: [{name: eth0}, {name: eth1}]', ...twice).problems).toEqual([
      'the MAC map has 52:54:00:00:00:0A twice',
    ]);
  });

  it('allows a VLAN a name whose first part the script of the host shortens', () => {
    const networkConfig =
      'interfaces: [{name: enp94s0f0np0.2507, type: vlan, vlan: {id: 2507, base-iface: enp94s0f0np0}}]';
    const [{ content } = { content: '' }] = profilesOf({
      networkConfig,
      interfaces: [entry('enp94s0f0np0')],
    });
    expect(content).toContain('interface-name=enp94s0f0np0.2507');
    expect(() => renderKeyfiles(networkConfig)).toThrow(/at most 15 bytes/);
  });
});
