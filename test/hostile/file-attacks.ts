import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { createRedaction } from '../../src/base/text/redact.ts';
import { resolveDependencies } from '../../src/fbc/dependencies.ts';
import { filterCatalog } from '../../src/fbc/filter/filter-catalog.ts';
import { readCatalog } from '../../src/fbc/read/read-catalog.ts';
import type { CatalogSelection } from '../../src/fbc/source.ts';
import { decodeInitrd } from '../../src/ignition/initrd.ts';
import { readFiles } from '../../src/registry/layers/read.ts';
import { listSites } from '../../src/sites/sources/sites.ts';
import { runProgram } from '../../src/cli/program.ts';
import { layerOf } from '../support/images.ts';
import { type Attack, many, nest, digestOfNumber, MIB } from './attack.ts';

const redaction = createRedaction();

const { signal } = new AbortController();

/** Runs a command; an exit code other than 0 is thrown as `{ code, exitCode }`. */
async function run(args: readonly string[]): Promise<void> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  let told = '';
  stdout.resume();
  stderr.on('data', (piece: Buffer) => (told = (told + piece.toString()).slice(-2000)));
  const host = {
    env: {},
    redaction,
    cwd: '/',
    containersDir: '/nonexistent',
    isTTY: false,
    now: Date.now,
  };
  const exitCode = await runProgram(args, { ...host, stdout, stderr, signal });
  if (exitCode !== 0) throw new Refused(told, exitCode);
}

/** Thrown for a command that was refused. */
export class Refused extends Error {
  readonly exitCode: number;
  constructor(told: string, exitCode: number) {
    super(/\[([a-z-]+\.[a-z-]+)\]/.exec(told)?.[1] ?? told.slice(0, 200));
    this.exitCode = exitCode;
  }
}

/** A file that a command reads. */
const file = (
  size: number,
  { name, args }: { readonly name: string; readonly args: (path: string) => readonly string[] },
  make: (size: number) => string | Uint8Array,
): Attack => ({
  size,
  prepare: (wanted, folder) => {
    const path = join(folder, name);
    writeFileSync(path, make(wanted));
    return () => run(args(path));
  },
});

const CONFIG = { name: 'appliance-config.yaml', args: (path: string) => ['validate', path] };
const HEAD = 'apiVersion: v1beta1\nkind: ApplianceConfig\nocpRelease:\n  version: 4.20.1\n';

const catalog = (size: number, make: (size: number) => string, name = 'catalog.json'): Attack => ({
  size,
  prepare: (wanted, folder) => {
    writeFileSync(join(folder, name), make(wanted));
    return () => readCatalog(folder, { signal });
  },
});

/** A catalog that is filtered too. */
const selection = (
  size: number,
  packages: CatalogSelection['packages'],
  make: (size: number) => readonly string[],
): Attack => ({
  size,
  prepare: (wanted, folder) => {
    writeFileSync(join(folder, 'catalog.json'), make(wanted).join('\n'));
    return async () =>
      filterCatalog(await readCatalog(folder, { signal }), { packages, full: false });
  },
});

const channel = (name: string, entries: readonly object[]): string =>
  JSON.stringify({ schema: 'olm.channel', package: 'a', name, entries });

const PACKAGE = '{"schema":"olm.package","name":"a","defaultChannel":"c0"}';

const times = <Item>(count: number, make: (index: number) => Item): readonly Item[] =>
  Array.from({ length: count }, (_, index) => make(index));

const bundle = (index: number, properties: string): string =>
  `{"schema":"olm.bundle","package":"a","name":"a.v${index}","image":"a/b@${digestOfNumber(index)}","properties":[{"type":"olm.package","value":{"packageName":"a","version":"1.0.${index}"}},${properties}]}`;

/** A table that fills a template with one hole. */
const table = (size: number, name: string, make: (size: number) => string): Attack => ({
  size,
  prepare: (wanted, folder) => {
    const template = join(folder, 'template');
    mkdirSync(template);
    writeFileSync(join(template, 'install-config.yaml'), 'metadata: {name: "{{ name }}"}\n');
    writeFileSync(join(template, 'image-based-config.yaml'), 'hostname: "{{ name }}"\n');
    writeFileSync(join(folder, name), make(wanted));
    return async () => {
      const list = await listSites(join(folder, name), { signal, template });
      await list.close();
    };
  },
});

/** Files and archives. */
export const FILE_ATTACKS: Readonly<Record<string, Attack>> = {
  'catalog: JSON that is nested deep': catalog(100_000, (n) => `{"schema":"a","b":${nest(n)}}`),
  'catalog: YAML that is nested deep': catalog(50_000, (n) => `a: ${nest(n)}\n`, 'c.yaml'),
  'catalog: YAML in steps': catalog(2000, (n) => many('- ', n) + '\n', 'c.yaml'),
  'catalog: YAML with aliases of aliases': catalog(
    1000,
    (n) =>
      `a0: &a0 [x]\n${Array.from({ length: n }, (_, at) => `a${at + 1}: &a${at + 1} [*a${at}, *a${at}]\n`).join('')}`,
    'c.yaml',
  ),
  'catalog: bundles with huge last versions': catalog(1000, (n) =>
    Array.from({ length: n }, (_, at) =>
      bundle(at, `{"type":"olm.maxOpenShiftVersion","value":"${many('9', 2000)}"}`),
    ).join('\n'),
  ),
  'catalog: a version that is nested deep': catalog(2500, (n) =>
    bundle(0, `{"type":"olm.maxOpenShiftVersion","value":${nest(n)}}`),
  ),
  'catalog: many channels of one package': selection(
    1000,
    [{ name: 'a', channels: [], minVersion: '1.0.0' }],
    (n) => [
      PACKAGE,
      ...times(n, (at) => channel(`c${at}`, [{ name: `a.v${at}` }])),
      ...times(n, (at) => bundle(at, '{"type":"b","value":0}')),
    ],
  ),
  'catalog: many entries that skip the same': selection(
    5000,
    [{ name: 'a', channels: [], minBundle: 'a.v0' }],
    (n) => [
      PACKAGE,
      channel(
        'c0',
        times(n, (at) => ({
          name: `a.v${at}`,
          replaces: `a.v${at - 1}`,
          skips: ['x', 'a.v0'],
        })).slice(1),
      ),
    ],
  ),
  'catalog: many malformed bundles in a chain': selection(
    1000,
    [{ name: 'b', channels: [] }],
    (n) => [
      PACKAGE,
      channel(
        'c0',
        times(n, (at) => ({ name: `a.v${at}`, replaces: `a.v${at - 1}` })),
      ),
      ...times(n, (at) => bundle(at, '1')),
    ],
  ),
  'catalog: a bundle with many requirements': {
    size: 1000,
    prepare: (size, folder) => {
      const required = (at: number): string =>
        `{"type":"olm.package.required","value":{"packageName":"p${at}","versionRange":">=1.0.0"}}`;
      const documents = [
        PACKAGE,
        channel('c0', [{ name: 'a.v0' }]),
        ...times(size, (at) => bundle(at, at === 0 ? times(size, required).join(',') : '0')),
      ];
      writeFileSync(join(folder, 'catalog.json'), documents.join('\n').replaceAll(',0]', ']'));
      return async () => {
        const filtered = filterCatalog(await readCatalog(folder, { signal }), {
          packages: [],
          full: true,
        });
        resolveDependencies([{ name: 'a', filtered, mode: 'add' }]);
      };
    },
  },
  'catalog: an ignore file of one long rule': {
    size: 250_000,
    prepare: (size, folder) => {
      writeFileSync(join(folder, 'catalog.json'), PACKAGE);
      writeFileSync(join(folder, '.indexignore'), many('a', size));
      return () => readCatalog(folder, { signal });
    },
  },
  'configuration: a line of quotes': file(
    8000,
    CONFIG,
    (n) => `${HEAD}pullSecret: ${many('"', n)}\n`,
  ),
  'configuration: a line of secret words': file(
    8000,
    CONFIG,
    (n) => `${HEAD}x: ${many('secret ', n)}:\n`,
  ),
  'configuration: a secret of many lines': file(
    16_000,
    CONFIG,
    (n) => `${HEAD}pullSecret: |\n${many('  aaaaaaaaaaaa0\n', n)}sshKey: [\n`,
  ),
  'configuration: YAML that is nested deep': file(25_000, CONFIG, (n) => `${HEAD}x: ${nest(n)}\n`),
  'configuration: YAML maps in maps': file(25_000, CONFIG, (n) => `${HEAD}x: ${many('{a: ', n)}\n`),
  'configuration: aliases': file(
    4000,
    CONFIG,
    (n) => `${HEAD}x: &a [b]\ny: [${many('*a, ', n)}*a]\n`,
  ),
  'configuration: anchors of anchors': file(
    100,
    CONFIG,
    (n) =>
      `${HEAD}a0: &a0 {x: y}\n${Array.from({ length: n }, (_, at) => `a${at + 1}: &a${at + 1} {p: *a${at}, q: *a${at}}\n`).join('')}`,
  ),
  'configuration: merges of merges': file(
    100,
    CONFIG,
    (n) =>
      `${HEAD}a0: &a0 {x: y}\n${Array.from({ length: n }, (_, at) => `a${at + 1}: &a${at + 1} {<<: [*a${at}, *a${at}]}\n`).join('')}`,
  ),
  'configuration: many catalogs': file(
    500,
    CONFIG,
    (n) => `${HEAD}operators:\n${'  - catalog: a/b\n    packages: [{name: c}]\n'.repeat(n)}`,
  ),
  'configuration: a version of digits': file(8000, CONFIG, (n) =>
    HEAD.replace('4.20.1', `4.${many('9', n)}.1-${many('0.', n)}`),
  ),
  'configuration: unknown keys': file(
    8000,
    CONFIG,
    (n) => HEAD + Array.from({ length: n / 8 }, (_, at) => `k${at}: v\n`).join(''),
  ),
  'sites: a CSV of a million lines': table(250_000, 'sites.csv', (n) => `name\n${'a\n'.repeat(n)}`),
  'sites: a CSV of a million empty lines': table(
    250_000,
    'sites.csv',
    (n) => `name\n${'\n'.repeat(n)}`,
  ),
  'sites: a CSV with an open quote': table(500_000, 'sites.csv', (n) => `name\n"${many('a\n', n)}`),
  'sites: a CSV of one cell': table(500_000, 'sites.csv', (n) => `name\n${many('a', n)}`),
  'sites: a YAML table': table(3000, 'sites.yaml', (n) => '- name: a\n'.repeat(n)),
  'sites: an archive of zeros': {
    size: 16 * MIB,
    prepare: (size, folder) => {
      const path = join(folder, 'sites.tar.gz');
      writeFileSync(path, gzipSync(Buffer.alloc(size)));
      return async () => (await listSites(path, { signal })).close();
    },
  },
  'layer: zeros in gzip': {
    size: 16 * MIB,
    prepare: (size) => {
      const layer = layerOf(gzipSync(Buffer.alloc(size)));
      return () => readFiles([layer], () => true, { signal });
    },
  },
  'initrd: zeros in gzip': {
    size: 16 * MIB,
    prepare: (size) => {
      const archive = gzipSync(Buffer.alloc(size));
      return () => decodeInitrd(archive);
    },
  },
};
