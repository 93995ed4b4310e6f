import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ConfigError } from '../../src/base/errors.ts';
import { renderKeyfiles } from '../support/render-profiles.ts';
import { TAKEN } from '../support/network-states.ts';
import { requireTool } from '../support/tools.ts';
import { runs } from '../support/properties.ts';

/** NetworkManager itself: what it understands of a profile, which it refuses where it could not connect with it. */
const understand = (content: string): string =>
  execFileSync(
    'nmcli',
    ['--offline', 'connection', 'modify', 'connection.autoconnect-priority', '1'],
    { input: content, encoding: 'utf8', stdio: 'pipe' },
  );

/** Sections with their entries, as Python's standard library reads them. */
const PARSE = `
import configparser, json, sys
def sections(text):
    parser = configparser.ConfigParser(interpolation=None, delimiters='=', comment_prefixes=('#',), strict=True)
    parser.optionxform = str
    parser.read_string(text)
    return {name: dict(parser[name]) for name in parser.sections()}
print(json.dumps([sections(text) for text in json.load(sys.stdin)]))
`;

type Sections = Readonly<Record<string, Readonly<Record<string, string>>>>;

const parseAll = (contents: readonly string[]): readonly Sections[] =>
  JSON.parse(
    execFileSync('python3', ['-c', PARSE], {
      input: JSON.stringify(contents),
      encoding: 'utf8',
      maxBuffer: Infinity,
    }),
  ) as readonly Sections[];

const KEYS: Readonly<Record<string, RegExp>> = {
  connection:
    /^(?:autoconnect(?:-slaves|-priority)?|id|interface-name|master|slave-type|type|uuid)$/,
  bond: /^(?:mode|primary|arp_interval|arp_ip_target)$/,
  bridge: /^vlan-filtering$/,
  ipv4: /^(?:address0|dhcp-[a-z-]+|dns(?:-priority|-search)?|ignore-auto-.*|method|never-default|route0(?:_options)?)$/,
  ipv6: /^(?:dhcp-timeout|method)$/,
  ethernet: /^(?:cloned-mac-address|mtu)$/,
  vlan: /^(?:flags|id|parent)$/,
  user: /^nmstate\.interface\.description$/,
};

const HOSTILE = [
  '\nmethod=auto\n[evil]\nx=y',
  '\r[evil]\r',
  '\u2028[evil]',
  ';',
  '\\',
  '=',
  '[a]',
  '\0',
];
const anyText = fc.oneof(
  fc.constantFrom('eth1', '192.0.2.1', 'a.example', '52:54:00:00:00:01', 'x'),
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc
    .tuple(fc.constantFrom('', ' ', 'eth1', '192.0.2.1', '::1%'), fc.constantFrom(...HOSTILE))
    .map((parts) => parts.join('')),
);

/** A host with a foreign text in one of its members. */
const anyNetwork = fc.tuple(fc.nat(12), anyText).map(([at, text]) => {
  const pick = (index: number, usual: unknown): unknown => (index === at ? text : usual);
  const address = { 'ip': pick(0, '192.0.2.9'), 'prefix-length': pick(1, 24) };
  const targets = { arp_interval: 100, arp_ip_target: pick(3, '192.0.2.1') };
  const options = { primary: pick(2, 'eth5'), ...targets };
  return {
    'interfaces': [
      {
        'name': pick(4, 'eth0'),
        'description': pick(5, 'a'),
        'mac-address': pick(6, '52:54:00:00:00:01'),
        'ipv4': {
          'enabled': true,
          'dhcp': true,
          'dhcp-client-id': pick(7, 'll'),
          'address': [address],
        },
      },
      { name: 'v.5', type: 'vlan', vlan: { 'base-iface': pick(8, 'eth0'), 'id': 5 } },
      {
        'name': 'b',
        'type': 'bond',
        'link-aggregation': { mode: 1, options, port: [pick(9, 'eth5')] },
      },
    ],
    'dns-resolver': { config: { server: [pick(10, '192.0.2.1')], search: [pick(11, 'a')] } },
    'routes': {
      config: [
        {
          'destination': '0.0.0.0/0',
          'next-hop-interface': 'eth0',
          'next-hop-address': pick(12, '192.0.2.1'),
        },
      ],
    },
  };
});

function renderOrRefuse(network: object): readonly string[] {
  try {
    return renderKeyfiles(JSON.stringify(network)).map(({ content }) => content);
  } catch (error) {
    if (error instanceof ConfigError) return [];
    throw error;
  }
}

describe('network profiles', () => {
  it.skipIf(!requireTool('nmcli'))('are all accepted by NetworkManager', () => {
    for (const [text] of TAKEN) {
      for (const { content } of renderKeyfiles(text)) {
        expect(understand(content)).toContain('[connection]');
      }
    }
  });

  it.skipIf(!requireTool('nmcli'))('have unchanged descriptions', () => {
    const written = '  to the\\n; [spine] = #1 ü ';
    const text = JSON.stringify({ interfaces: [{ name: 'eth0', description: written }] });
    const [{ content } = { content: '' }] = renderKeyfiles(text);
    const [, found = ''] = /description=(.*)\n/.exec(understand(content)) ?? [];
    expect(found.replaceAll('\\s', ' ').replaceAll('\\\\', '\\')).toBe(written);
  });

  it.skipIf(!requireTool('python3'))(
    'never have a line without a member of the configuration',
    () => {
      const contents = fc.sample(anyNetwork, { numRuns: runs(1000) }).flatMap(renderOrRefuse);
      expect(contents.length).toBeGreaterThan(200);
      for (const [index, sections] of parseAll(contents).entries()) {
        const entries = Object.entries(sections).flatMap(([section, members]) =>
          Object.keys(members).map((key) => [section, key] as const),
        );
        for (const [section, key] of entries)
          expect(key).toMatch(KEYS[section] ?? /^no such section$/);
        const lines = (contents[index] ?? '').split(/\r\n?|[\n\u2028\u2029\u0085]/);
        expect(lines.filter((line) => line.includes('='))).toHaveLength(entries.length);
      }
    },
  );
});
