import { describe, expect, it } from 'vitest';
import { createRedaction } from '../../src/base/text/redact.ts';
import { checkSite } from '../../src/sites/check.ts';
import { readSiteDocument } from '../../src/sites/documents.ts';
import { INSTALL_CONFIG } from '../../src/sites/documents.ts';
import { createSiteInput, TEST_EPOCH, tell, writeInstallConfig } from '../support/site-inputs.ts';

const redaction = createRedaction();

const check = (file: string | Uint8Array) =>
  checkSite(createSiteInput({ 'install-config.yaml': file }), { epoch: TEST_EPOCH, redaction });

const GOOD = writeInstallConfig();

describe('an install-config.yaml is read', () => {
  it.each([
    ['with a byte order mark', `\ufeff${GOOD}`],
    ['with the line ends of Windows', GOOD.replaceAll('\n', '\r\n')],
    ['behind a marker', `---\n${GOOD}`],
    ['behind a directive', `%YAML 1.1\n---\n${GOOD}`],
    ['before a marker with nothing behind it', `${GOOD}---\n`],
    ['before a marker with a comment behind it', `${GOOD}---\n# no more\n`],
    ['before the end of a document', `${GOOD}...\n`],
    ['with tabs between its words', GOOD.replace('baseDomain: ', 'baseDomain:\t')],
    ['with numbers in other systems', GOOD.replace('replicas: 1', 'replicas: 0x1')],
    ['with keys that say that they are', GOOD.replace('baseDomain: ', '? baseDomain\n: ')],
  ])('%s', (_, text) => {
    const { site, problems } = check(text);
    expect(tell(problems)).toEqual([]);
    expect(site?.install.baseDomain).toBe('edge.example.com');
  });
});

describe('an install-config.yaml is refused', () => {
  it.each<readonly [string, string | Uint8Array, string]>([
    [
      'with a second document',
      `${GOOD}---\nkind: A\n`,
      '9:1 : not valid YAML: a second document begins here; the file may have only one',
    ],
    [
      'in UTF-16',
      Buffer.from(`\ufeff${GOOD}`, 'utf16le'),
      '1:1 : not valid YAML: this is not UTF-8',
    ],
    [
      'in Latin-1',
      Buffer.from(`${GOOD}# M\u00fcnchen\n`, 'latin1'),
      '1:1 : not valid YAML: this is not UTF-8',
    ],
    [
      'with a tab for indentation',
      GOOD.replace('platform: {none: {}}', 'platform:\n\tnone: {}'),
      '8:1 : not valid YAML: a tab is used for indentation; only spaces are allowed',
    ],
    [
      'with a number beyond all numbers',
      GOOD.replace('replicas: 1', 'replicas: 99999999999999999999'),
      '4:40 controlPlane.replicas: cannot unmarshal number into a field of type int',
    ],
    [
      'with lists within lists',
      `x: ${'['.repeat(100_000)}`,
      '1:253 : not valid YAML: this is nested too deep',
    ],
    [
      'with mappings within mappings',
      `x: ${'{a: '.repeat(100_000)}`,
      '1:997 : not valid YAML: this is nested too deep',
    ],
    [
      'with items within items',
      '- '.repeat(100_000),
      '1:500 : not valid YAML: this is nested too deep',
    ],
    [
      'with keys within keys',
      Array.from({ length: 1_000 }, (_, at) => `${' '.repeat(at)}a:\n`).join(''),
      '250:251 : not valid YAML: this is nested too deep',
    ],
    [
      'with more values than a site has, which would take a gigabyte of memory',
      `x: [${'a,'.repeat(500_000)}]`,
      '1:166668 : not valid YAML: there are too many values',
    ],
  ])('%s', (_, file, expected) => {
    expect(tell(check(file).problems)[0]).toBe(expected);
  });

  it('with empty items in lists that need values', () => {
    expect(tell(check(writeInstallConfig({ compute: 'compute: [null]' })).problems)).toEqual([
      expect.stringContaining('Compute.Replicas'),
      expect.stringContaining('compute[0].name'),
    ]);
    const { problems } = checkSite(
      createSiteInput({ 'image-based-config.yaml': 'additionalNTPSources: [~]\n' }),
      { epoch: TEST_EPOCH, redaction },
    );
    expect(tell(problems)).toEqual([
      '1:24 AdditionalNTPSources: Invalid value: "": NTP server is not a valid IP or domain name',
    ]);
  });
});

describe('a lenient document', () => {
  const read = (text: string) =>
    readSiteDocument(
      { path: 'install-config.yaml', bytes: Buffer.from(text), shownAs: 'i.yaml' },
      { ...INSTALL_CONFIG, others: 'warned' },
    );

  it('gets warnings about its unknown keys, on every level', () => {
    const { problems, warnings, value } = read(
      'baseDomian: a\nmetadata: {name: a, colour: b}\nbaseDomain: c\n',
    );
    expect(problems).toEqual([]);
    expect(tell(warnings)).toEqual([
      '1:1 baseDomian: unknown field "baseDomian"',
      '2:21 metadata.colour: unknown field "colour"',
    ]);
    expect(warnings[0]?.hint).toBe('did you mean "baseDomain"?');
    expect(value).toMatchObject({ baseDomain: 'c', metadata: { name: 'a' } });
  });

  it('is refused for every other problem', () => {
    const { problems } = read('fips: a\nfips: true\nfips2: 1\n');
    expect(tell(problems)).toEqual([
      '1:7 fips: cannot unmarshal string into a field of type bool',
      '2:1 fips: is written twice, first in line 1',
    ]);
  });
});
