import fc from 'fast-check';
import { parseAllDocuments } from 'yaml';
import { describe, expect, it } from 'vitest';
import { exportSite, type ExportedSite } from '../../../src/sites/export/export.ts';
import { convertResources } from '../../../src/sites/resources/convert.ts';
import type { ImageBasedSite, SiteInput } from '../../../src/sites/site.ts';
import { runs } from '../../support/properties.ts';

const SITE: ImageBasedSite = {
  kind: 'image-based',
  name: 'alpha',
  install: { clusterName: 'alpha', baseDomain: 'edge.example', sshKey: '', pullSecret: '{}' },
  imageBased: { additionalNTPSources: [], hostname: 'alpha', nodeLabels: {} },
  extraManifests: [],
};

const BOOT = {
  bootMac: '52:54:00:00:00:01',
  controller: { address: 'redfish://192.0.2.1', disableCertificateVerification: true },
};

type Texts = Readonly<Record<string, string | Uint8Array>>;

const toFiles = (texts: Texts): SiteInput['files'] =>
  Object.entries(texts).map(([path, text]) => ({ path, bytes: Buffer.from(text), shownAs: path }));

const exportWith = (texts: Texts, site: Partial<ImageBasedSite> = {}): ExportedSite =>
  exportSite(
    { site: { ...SITE, ...site }, files: toFiles(texts), find: () => BOOT },
    { form: 'clusterinstance', imageSet: 'set', templateNamespace: 'templates' },
  );

const readAgain = ({ files }: ExportedSite): SiteInput =>
  convertResources(
    {
      name: 'alpha',
      files: toFiles(Object.fromEntries(files.map((file) => [file.name, file.text]))),
    },
    undefined,
  );

const errorsOf = ({ findings }: ExportedSite): readonly string[] =>
  findings.flatMap(({ severity, file, problem }) =>
    severity === 'error' ? [`${file}: ${problem}`] : [],
  );

describe('a text in an exported resource', () => {
  const piece = fc.constantFrom(
    ...[
      '---\n',
      '...\n',
      '# ',
      ': ',
      '\t',
      ' ',
      '\n',
      '\r\n',
      '"',
      "'",
      '|',
      '\ufeff',
      '\u2028',
      '\u0085',
    ],
    ...['on', '1_000', '0o7', '~', '\\', '{{ x }}', '\u{1f600}', '\u00e9'],
  );
  const anyText = fc.oneof(
    fc.string({ unit: 'grapheme' }),
    fc.array(fc.oneof(piece, fc.string()), { maxLength: 12 }).map((pieces) => pieces.join('')),
  );

  it('is the same, byte by byte, when a manifest is read again', () => {
    fc.assert(
      fc.property(anyText, anyText, (first, second) => {
        fc.pre(!`${first}${second}`.includes('\0'));
        const exported = exportWith({
          'extra-manifests/a.yaml': first,
          'extra-manifests/b.json': second,
        });
        expect(errorsOf(exported)).toEqual([]);
        const found = readAgain(exported).files.filter(({ path }) => path.startsWith('extra-'));
        expect(found.map(({ path, bytes }) => [path, Buffer.from(bytes).toString('utf8')])).toEqual(
          [
            ['extra-manifests/a.yaml', first],
            ['extra-manifests/b.json', second],
          ],
        );
      }),
      { numRuns: runs(300) },
    );
  });

  it('is the same for pull secret, bundle and key, whatever is in it', () => {
    fc.assert(
      fc.property(anyText, anyText, (pullSecret, additionalTrustBundle) => {
        const install = { ...SITE.install, pullSecret, additionalTrustBundle, sshKey: pullSecret };
        const [file] = readAgain(exportWith({}, { install })).files;
        const [read] = parseAllDocuments(Buffer.from(file?.bytes ?? '').toString('utf8'));
        expect(read?.toJS()).toMatchObject({
          pullSecret,
          ...(additionalTrustBundle !== '' && { additionalTrustBundle }),
          ...(pullSecret !== '' && { sshKey: pullSecret }),
        });
      }),
    );
  });
});

describe('extra manifests in ConfigMaps', () => {
  it('are in several, and files of their own, if they are large', () => {
    const large = '# 0123456789\n'.repeat(30_000);
    const texts = Object.fromEntries(
      ['a', 'b', 'c'].map((name) => [`extra-manifests/${name}.yaml`, `${large}# ${name}\n`]),
    );
    const exported = exportWith(texts);
    expect(exported.files.map(({ name }) => name)).toEqual([
      'namespace.yaml',
      'secrets.yaml',
      'extra-manifests.yaml',
      'extra-manifests-2.yaml',
      'extra-manifests-3.yaml',
      'clusterinstance.yaml',
      'kustomization.yaml',
    ]);
    const { files, problems } = readAgain(exported);
    expect(problems).toEqual([]);
    const found = files.filter(({ path }) => path.startsWith('extra-'));
    expect(found.map(({ path, bytes }) => [path, Buffer.from(bytes).toString()])).toEqual(
      Object.entries(texts),
    );
  });

  it.each<[string, Texts, RegExp]>([
    [
      'has a name that no key has',
      { 'extra-manifests/a b.yaml': 'x' },
      /^extra-manifests\/a b.yaml: the manifest cannot be in a ConfigMap: "a b.yaml" has a key of other/,
    ],
    ['is not UTF-8', { 'extra-manifests/a.yaml': Buffer.from([0xff]) }, /it is not UTF-8$/],
    ['is too large', { 'extra-manifests/a.yaml': '# x\r\n'.repeat(200_000) }, /it is too large$/],
  ])('are refused by name if one of them %s', (_, texts, expected) => {
    expect(errorsOf(exportWith(texts))).toEqual([expect.stringMatching(expected)]);
  });
});
