import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { checkInstallationConfig } from '../../src/sites/installation.ts';
import { TEST_CERTIFICATE, TEST_SSH_KEY } from '../support/installation-iso.ts';
import { requireTool } from '../support/tools.ts';

/** Lines 1 to 4; what a test adds begins in line 5. */
const HEAD = [
  `pullSecret: '{"auths":{"quay.io":{"auth":"dXNlcjpwYXNz"}}}'`,
  'seedImage: quay.io/edge/seed:4.21.3',
  'seedVersion: 4.21.3',
  'installationDisk: /dev/vda',
];

const check = (...lines: readonly string[]): readonly string[] =>
  checkInstallationConfig([...lines, ''].join('\n'), 'i.yaml').problems.map(
    ({ line, column, path, problem }) => `${line}:${column} ${path}: ${problem}`,
  );

const INVALID = 'Invalid value: ';
const HIDDEN = 'Invalid value: "[redacted]": ';
const NO_PROXY =
  'each element of noProxy must be a IP, CIDR or domain without wildcard characters, which is violated by element';
const FLAGS = 'allowed flags are [--append-karg --delete-karg --save-partlabel --save-partindex]';
const START = "partition start must be '0' or match pattern [+-]?<number>[KMGTP]";

type Row = readonly [what: string, lines: readonly string[], problem: string];

const REFUSED: readonly Row[] = [
  [
    'an invalid SSH key',
    ['sshKey: ssh-rsa nothing'],
    `5:9 sshKey: ${HIDDEN}ssh: no key found: is cut short: its base64 text is incomplete`,
  ],
  [
    'a partition that starts nowhere',
    ['extraPartitionStart: ""'],
    '5:22 ExtraPartitionStart: Required value: partition start sector cannot be empty',
  ],
  [
    'a partition start without a unit',
    ['extraPartitionStart: "40"'],
    `5:22 ExtraPartitionStart: ${INVALID}"40": ${START}`,
  ],
  [
    'a partition start with a unit of two letters',
    ['extraPartitionStart: 40GB'],
    `5:22 ExtraPartitionStart: ${INVALID}"40GB": ${START}`,
  ],
  [
    'a trust bundle that is not PEM',
    ['additionalTrustBundle: certificate'],
    `5:24 additionalTrustBundle: ${HIDDEN}invalid block: has no block of PEM`,
  ],
  [
    'a source in capitals',
    ['imageDigestSources:', '- source: quay.io/Edge', '  mirrors: [a.example/b]'],
    `6:11 imageDigestSources[0].source: ${INVALID}"quay.io/Edge": ` +
      'failed to parse: invalid reference format: repository name must be lowercase',
  ],
  [
    'an empty network configuration',
    ['networkConfig: {}'],
    '5:16 networkConfig: nmstate generated an empty NetworkManager config file content',
  ],
  [
    'a source that is empty',
    ['imageDigestSources:', '- source: ""'],
    `6:11 imageDigestSources[0].source: ${INVALID}"": failed to parse: invalid reference format`,
  ],
  [
    'a mirror with a tag',
    ['imageDigestSources:', '- source: quay.io/edge', '  mirrors: [a.example/b, "a.example/b:1"]'],
    `7:26 imageDigestSources[0].mirrors[1]: ${INVALID}"a.example/b:1": must be repository--not reference`,
  ],
  [
    'a proxy without an address',
    ['proxy: {noProxy: a.example}'],
    '5:8 proxy: Required value: must include httpProxy or httpsProxy',
  ],
  [
    'a proxy that speaks another protocol',
    ['proxy:', '  httpProxy: invalidscheme://p.example:3128'],
    `6:14 proxy.httpProxy: Unsupported value: "invalidscheme": supported values: "http"`,
  ],
  [
    'TLS to the proxy for HTTP',
    ['proxy:', '  httpProxy: https://p.example'],
    `6:14 proxy.httpProxy: Unsupported value: "https": supported values: "http"`,
  ],
  [
    'another protocol for HTTPS',
    ['proxy:', '  httpsProxy: ftp://p.example'],
    `6:15 proxy.httpsProxy: Unsupported value: "ftp": supported values: "http", "https"`,
  ],
  [
    'a proxy that is a host alone',
    ['proxy:', '  httpProxy: localhost'],
    `6:14 proxy.httpProxy: ${INVALID}"localhost": parse "localhost": invalid URI for request`,
  ],
  [
    'a wildcard in noProxy',
    ['proxy:', '  httpProxy: http://p.example', '  noProxy: 10.0.0.0/8, *.example'],
    `7:12 proxy.noProxy: ${INVALID}"10.0.0.0/8,*.example": ${NO_PROXY} 1 "*.example"`,
  ],
  [
    'another flag for coreos-installer',
    ['coreosInstallerArgs: [--save-partindex=5]'],
    `5:23 CoreosInstallerArgs: Required value: found unexpected flag --save-partindex=5 for coreosInstallerArgs - ${FLAGS}`,
  ],
  [
    'a blank in a value for coreos-installer',
    ['coreosInstallerArgs: [--append-karg, "a b"]'],
    '5:38 CoreosInstallerArgs: Required value: found unexpected chars in value a b for installer',
  ],
  [
    'an empty value for coreos-installer',
    ['coreosInstallerArgs: [--append-karg, ""]'],
    '5:38 CoreosInstallerArgs: Required value: found unexpected chars in value  for installer',
  ],
  [
    'another architecture',
    ['architecture: s390x'],
    `5:15 architecture: ${INVALID}"s390x": architecture must be one of [amd64 arm64]`,
  ],
  ['an unknown key', ['instalationDisk: /dev/sda'], '5:1 instalationDisk: no such key'],
  [
    'a key that is written twice',
    ['seedVersion: 4.21.4'],
    '5:1 seedVersion: is written twice, first in line 3',
  ],
  [
    'a key that is written twice below the network configuration',
    ['networkConfig:', '  interfaces: [{name: eth0}]', '  interfaces: []'],
    '7:3 networkConfig.interfaces: is written twice, first in line 6',
  ],
  [
    'a network interface that nmstate would refuse',
    ['networkConfig:', '  interfaces:', '  - {name: eth0, type: ethernet, state: sideways}'],
    '7:41 networkConfig.interfaces[0].state: interface "eth0": "sideways" is not ' +
      'one of up, down, absent, ignore, unknown',
  ],
  [
    'a negative partition number',
    ['extraPartitionNumber: -1'],
    '5:23 extraPartitionNumber: must be at least 0, but is -1',
  ],
  [
    'a text for a flag',
    ['shutdown: later'],
    '5:11 shutdown: must be true or false, but is "later"',
  ],
];

const ACCEPTED: readonly (readonly [what: string, lines: readonly string[]])[] = [
  ['a partition start of 0', ['extraPartitionStart: "0"']],
  ['a partition start with a sign', ['extraPartitionStart: +40M']],
  ['an address with a port as source', ['imageDigestSources: [{source: "registry.lab:5000"}]']],
  ['a source without mirrors', ['imageDigestSources: [{source: quay.io/a, mirrors: []}]']],
  ['any policy of a source', ['imageDigestSources: [{source: quay.io/a, sourcePolicy: Other}]']],
  ['blanks between the elements of noProxy', ['proxy: {httpProxy: "http://p", noProxy: "a, ::1"}']],
  ['a star as noProxy', ['proxy: {httpsProxy: "https://p", noProxy: "*"}']],
  ['dots around a domain of noProxy', ['proxy: {httpProxy: "http://p", noProxy: ".a.b."}']],
  ['words of YAML 1.1 for a flag', ['shutdown: yes']],
  ['keys in other capitals', ['SSHKEY: ""']],
  [
    'every character that coreos-installer takes',
    [`coreosInstallerArgs: ['A9@!#$%*()_";:{}[]+,-./<=']`],
  ],
  ['comments around a key of SSH', ['sshKey: |', '  # mine', `  ${TEST_SSH_KEY}`]],
];

describe('the configuration of an installation', () => {
  it('needs a seed, its version, a disk and a pull secret', () => {
    expect(check('kind: ImageBasedInstallationConfig')).toEqual([
      '1:1 pullSecret: Required value: you must specify a pullSecret',
      '1:1 seedImage: Required value: you must specify a seedImage',
      '1:1 seedVersion: Required value: you must specify a seedVersion',
      '1:1 installationDisk: Required value: you must specify an installationDisk',
    ]);
  });

  it.each([
    ['no JSON', 'nonsense', 'not valid JSON'],
    ['no registry', '{"auths":{}}', 'auths required'],
    ['no auths', '{}', 'auths required'],
    [
      'a registry without credentials',
      '{"auths":{"q.io":{"email":"a"}}}',
      '"q.io" requires either auth or credsStore',
    ],
  ])('may not have a pull secret with %s, and does not quote it', (_what, secret, why) => {
    const { problems } = checkInstallationConfig(
      [...HEAD.slice(1), `pullSecret: '${secret}'`].join('\n'),
      'i.yaml',
    );
    expect(problems).toMatchObject([
      { line: 4, column: 13, path: 'pullSecret', problem: `${HIDDEN}${why}` },
    ]);
    expect(JSON.stringify(problems)).not.toContain(secret);
  });

  it.each(REFUSED)('may not have %s', (_what, lines, problem) => {
    expect(check(...HEAD, ...lines)).toEqual([problem]);
  });

  it.each(ACCEPTED)('may have %s', (_what, lines) => {
    expect(check(...HEAD, ...lines)).toEqual([]);
  });

  it('has all its problems reported in the order of the file', () => {
    const lines = ['architecture: s390x', 'shutdown: later', 'extraPartitionStart: x', 'other: 1'];
    const found = check('seedImage: ""', ...HEAD.slice(2), ...lines);
    expect(found.map((text) => Number(text.split(':')[0]))).toEqual([1, 1, 4, 5, 6, 7]);
  });

  it('shows no line whose value is a secret', () => {
    const { problems } = checkInstallationConfig(
      [
        ...HEAD,
        'proxy: {httpProxy: "ftp://user:top-word@p.example"}',
        'ignitionConfigOverride: [top-word]',
        'pulSecret: top-word',
        'sshKey: top-word',
      ].join('\n'),
      'i.yaml',
    );
    expect(problems).toHaveLength(4);
    expect(JSON.stringify(problems)).not.toContain('top-word');
  });

  it('is reported with the place if it is not valid YAML', () => {
    expect(check('seedImage: "a')).toEqual([
      expect.stringMatching(/^2:1 : not valid YAML: a closing quote/),
    ]);
  });

  it.skipIf(!requireTool('openssl'))(
    'may have several certificates, and no text after them',
    () => {
      const indented = TEST_CERTIFICATE.replaceAll(/^/gm, '  ').trimEnd();
      const bundle = ['additionalTrustBundle: |', indented, indented];
      expect(check(...HEAD, ...bundle)).toEqual([]);
      expect(check(...HEAD, ...bundle, '  more')).toEqual([
        `5:24 additionalTrustBundle: ${HIDDEN}invalid block: has text after the last block`,
      ]);
      const broken = indented.replace(/MII./, 'MIIA');
      expect(check(...HEAD, 'additionalTrustBundle: |', broken)).toEqual([
        expect.stringContaining('x509: malformed certificate'),
      ]);
    },
  );

  it.skipIf(!requireTool('openssl'))('warns of a certificate that is not an authority', () => {
    const line =
      'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout /dev/null -subj /CN=leaf -addext basicConstraints=CA:FALSE';
    const leaf = execFileSync('openssl', line.split(' '), { encoding: 'utf8', stdio: 'pipe' });
    const text = [...HEAD, 'additionalTrustBundle: |', leaf.replaceAll(/^/gm, '  ')].join('\n');
    const { warnings } = checkInstallationConfig(text, 'i.yaml');
    expect(warnings.map(({ path, problem }) => `${path}: ${problem}`)).toEqual([
      expect.stringMatching(/^additionalTrustBundle: .*CN=leaf.* is not marked as a certificate/),
    ]);
  });

  it('warns of what openshift-install 4.22 refuses, without the text of the override', () => {
    const warn = (...lines: readonly string[]): readonly object[] =>
      checkInstallationConfig([...HEAD, ...lines, ''].join('\n'), 'i.yaml').warnings;
    const override = (version: string): string =>
      `ignitionConfigOverride: '{"ignition":{"version":"${version}"},"passwd":{}}'`;
    for (const version of ['3.0.0', '3.1.0']) {
      const [warning, ...more] = warn(override(version));
      expect(more).toEqual([]);
      expect(warning).toMatchObject({
        path: 'ignitionConfigOverride',
        problem: `openshift-install 4.22 refuses Ignition ${version}: it takes 3.2.0`,
        lineText: 'ignitionConfigOverride:',
      });
    }
    expect(warn(override('3.2.0'))).toEqual([]);
    expect(warn('ignitionConfigOverride: no JSON')).toEqual([]);
  });
});
