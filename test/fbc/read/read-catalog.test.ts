import { chmod, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SealiftError } from '../../../src/base/errors.ts';
import { runProcess } from '../../../src/base/process.ts';
import { filterCatalog } from '../../../src/fbc/filter/filter-catalog.ts';
import { readCatalog, readDocuments } from '../../../src/fbc/read/read-catalog.ts';
import type { CatalogPlace } from '../../../src/fbc/catalog.ts';
import { asUser } from '../../support/as-user.ts';

let scratch: string;
beforeAll(async () => (scratch = await mkdtemp(join(tmpdir(), 'sealift-read-catalog-'))));
afterAll(() => rm(scratch, { recursive: true }));

async function writeCatalog(files: Readonly<Record<string, string | Buffer>>): Promise<string> {
  const directory = await mkdtemp(join(scratch, 'catalog-'));
  for (const [file, text] of Object.entries(files)) {
    await mkdir(dirname(join(directory, file)), { recursive: true });
    await writeFile(join(directory, file), text);
  }
  return directory;
}

const read = async (files: Readonly<Record<string, string | Buffer>>) =>
  readCatalog(await writeCatalog(files));

const namesIn = async (files: Readonly<Record<string, string | Buffer>>): Promise<string[]> =>
  (await read(files)).packages.map(({ name }) => name);

/** The problems of a catalog, one a line. */
async function problemsOf(directory: string): Promise<readonly string[]> {
  try {
    const name = 'registry.example/index:v1';
    filterCatalog(await readCatalog(directory, { name }), { packages: [], full: true }, { name });
  } catch (error) {
    if (!(error instanceof SealiftError)) throw error;
    expect(error.code).toBe('catalog.malformed');
    const [first, ...lines] = error.message.split('\n');
    expect(first).toMatch(/^catalog registry\.example\/index:v1 has (a problem|\d+ problems):$/);
    return lines.map((line) => line.trim());
  }
  return [];
}

const problemsIn = async (files: Readonly<Record<string, string | Buffer>>) =>
  problemsOf(await writeCatalog(files));

const pack = (name: string): string => JSON.stringify({ schema: 'olm.package', name });

const bundle = (change: object = {}): Record<string, unknown> => ({
  schema: 'olm.bundle',
  package: 'foo',
  name: 'foo.v1.0.0',
  image: 'registry.example/foo-bundle@sha256:aa',
  properties: [{ type: 'olm.package', value: { packageName: 'foo', version: '1.0.0' } }],
  ...change,
});

describe('the reader of documents of known schemas', () => {
  test('reads the name and default channel of a package', async () => {
    const { packages } = await read({
      'a.json':
        '{"schema":"olm.package","name":"foo","defaultChannel":"stable","icon":{}}{"schema":"olm.package","name":"bar","defaultChannel":""}',
    });
    expect(packages).toEqual([
      {
        name: 'foo',
        defaultChannel: 'stable',
        place: { file: 'a.json', number: 1, offset: 0, size: 73, syntax: 'json' },
      },
      {
        name: 'bar',
        defaultChannel: undefined,
        place: { file: 'a.json', number: 2, offset: 73, size: 57, syntax: 'json' },
      },
    ]);
  });

  test('reads the edges of channel entries, with null and empty as absent', async () => {
    const entries = [
      { name: 'foo.v1' },
      { name: 'foo.v2', replaces: 'foo.v1', skips: ['foo.v1.1'], skipRange: '<2.0.0' },
      { name: 'foo.v3', replaces: '', skips: null, skipRange: '' },
    ];
    const { channels } = await read({
      'a.json': JSON.stringify({ schema: 'olm.channel', package: 'foo', name: 'stable', entries }),
    });
    expect(channels).toMatchObject([{ package: 'foo', name: 'stable' }]);
    expect(channels[0]?.entries).toEqual([entries[0], entries[1], { name: 'foo.v3' }]);
  });

  test('reads the version, requirements and related images of a bundle as written', async () => {
    const properties = [
      { type: 'olm.package', value: { packageName: 'foo', version: '1.0.0+build' } },
      { type: 'olm.package.required', value: { packageName: 'bar', versionRange: '>=1.0.0' } },
      { type: 'olm.bundle.object', value: { data: 'AAAA' } },
      { type: 'olm.maxOpenShiftVersion', value: '4.21' },
    ];
    const relatedImages = [
      { name: '', image: 'registry.example/a' },
      { image: 'registry.example/a' },
      { name: 'b', image: '' },
    ];
    const { bundles } = await read({
      'a.json': JSON.stringify(bundle({ properties, relatedImages })),
    });
    expect(bundles).toMatchObject([
      {
        package: 'foo',
        name: 'foo.v1.0.0',
        image: 'registry.example/foo-bundle@sha256:aa',
        version: '1.0.0+build',
        requirements: [{ kind: 'package', packageName: 'bar', versionRange: '>=1.0.0' }],
        provides: [],
        maxOpenShiftVersion: '4.21',
        relatedImages: [
          { name: '', image: 'registry.example/a' },
          { name: '', image: 'registry.example/a' },
          { name: 'b', image: '' },
        ],
      },
    ]);
    expect(Object.keys(bundles[0] ?? {})).not.toContain('properties');
  });

  test('reads a bundle without version or with an empty image, as the selection may not need it', async () => {
    const { bundles } = await read({
      'a.json': JSON.stringify(bundle({ properties: [], image: '' })),
    });
    expect(bundles[0]).not.toHaveProperty('version');
    expect(bundles[0]?.image).toBe('');
  });

  test('reads the references and messages of deprecations', async () => {
    const { deprecations } = await read({
      'a.yaml': `schema: olm.deprecations
package: foo
entries:
- reference: {schema: olm.package}
  message: gone
- reference: {schema: olm.channel, name: alpha}
  message: use stable
`,
    });
    expect(deprecations[0]).toMatchObject({
      package: 'foo',
      entries: [
        { reference: { schema: 'olm.package' }, message: 'gone' },
        { reference: { schema: 'olm.channel', name: 'alpha' }, message: 'use stable' },
      ],
    });
  });

  test('finds keys regardless of their case', async () => {
    const { packages } = await read({
      'a.json': '{"Schema":"olm.package","NAME":"foo","DefaultChannel":"stable","pac\u212aage":""}',
    });
    expect(packages).toMatchObject([{ name: 'foo', defaultChannel: 'stable' }]);
  });
});

describe('a document of an unknown schema', () => {
  test('is kept by its place, and its bytes are read back unchanged', async () => {
    const other =
      '{ "schema": "example.numbers", "package": "",\r\n "big": 123456789012345678901234567890, "one": 1.00, "é": "\\u00e9" }';
    const yaml = 'schema: example.yaml\nname:   n # why\nbig: 123456789012345678901234567890\n';
    const directory = await writeCatalog({
      'a.json': `${pack('foo')}\n${other}\n${pack('bar')}`,
      'b.yaml': `---\n\n${yaml}---\nschema: other\n`,
    });
    const { others } = await readCatalog(directory);
    expect(others.map(({ schema, package: of, name }) => [schema, of, name])).toEqual([
      ['example.numbers', '', undefined],
      ['example.yaml', undefined, 'n'],
      ['other', undefined, undefined],
    ]);
    const bytes: string[] = [];
    await readDocuments(
      directory,
      others.map(({ place }) => place),
      (document) => {
        bytes.push(document.toString());
      },
    );
    expect(bytes).toEqual([other, yaml, 'schema: other\n']);
  });
});

describe('a file of a catalog', () => {
  test('may have JSON objects with anything or nothing between them', async () => {
    const pretty = JSON.stringify({ schema: 'olm.package', name: 'c' }, undefined, 4);
    const text = `\n\t${pack('a')}${pack('b')}\r\n${pretty.replaceAll('\n', '\r\n')} \n\n`;
    expect(await namesIn({ 'catalog.yaml': text })).toEqual(['a', 'b', 'c']);
  });

  test('may have YAML documents, of which empty ones do not count', async () => {
    const text =
      '---\n# only a comment\n---\n---\nschema: olm.package\nname: a\n--- # next\nschema: olm.package\nname: b\n...\n---\n';
    const { packages } = await read({ 'a.yml': text });
    expect(packages.map(({ name, place }) => [name, place.number])).toEqual([
      ['a', 1],
      ['b', 2],
    ]);
  });

  test('may have lines that end in CR LF', async () => {
    const text = '---\nschema: olm.package\nname: a\n---\nschema: olm.package\nname: |-\n  b\n';
    expect(await namesIn({ 'a.yaml': text.replaceAll('\n', '\r\n') })).toEqual(['a', 'b']);
  });

  test('may change from JSON to YAML, and have JSON after a comment or between two markers', async () => {
    expect(
      await namesIn({
        '1': `${pack('a')}\n---\nschema: olm.package\nname: b\n---\n${pack('c')}${pack('d')}\n---`,
        '2': `# a comment\n\n  # another\n${pack('e')}\n${pack('f')}\n`,
        '3': `---\n${pack('g')}\n---\n{schema: olm.package, name: h}\n`,
      }),
    ).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']);
  });

  test('may have dashes within a line, a word or a text that end no document', async () => {
    const text =
      'schema: olm.package\nname: a\ndescription: |\n  ---\n  --- x\nother: "a\n  --- b"\n---a: 1\n';
    expect(await namesIn({ 'a.yaml': text })).toEqual(['a']);
  });

  test('may begin with a byte order mark', async () => {
    expect(
      await namesIn({
        'a.json': `\ufeff${pack('a')}`,
        'b.yaml': '\ufeffschema: olm.package\nname: b\n',
        'c.yaml': '\ufeff---\nschema: olm.package\nname: c\n',
      }),
    ).toEqual(['a', 'b', 'c']);
  });

  test('may be empty', async () => {
    expect(await read({ a: '', b: '\n \n', c: '# nothing\n', d: '---', e: '\ufeff' })).toEqual({
      packages: [],
      channels: [],
      bundles: [],
      deprecations: [],
      others: [],
      malformed: [],
    });
  });
});

describe('the files of a catalog', () => {
  test('are all regular files, hidden or not, with any extension, in the order of their names', async () => {
    const directory = await writeCatalog({
      'b/z.txt': pack('3'),
      'b/.hidden/catalog': pack('2'),
      '.a': pack('1'),
      'c': pack('4'),
    });
    const { packages } = await readCatalog(directory);
    expect(packages.map(({ name, place }) => `${name} ${place.file}`)).toEqual([
      '1 .a',
      '2 b/.hidden/catalog',
      '3 b/z.txt',
      '4 c',
    ]);
  });

  test('are filtered by .indexignore, in which the last matching rule decides', async () => {
    expect(
      await namesIn({
        '.indexignore': '# not ours\r\n*.md\n/top\nold/**\n!old/keep.json\nlogs/\n',
        'README.md': 'text',
        'a/README.md': 'text',
        'top': 'text',
        'a/top': pack('a'),
        'old/gone.json': 'text',
        'old/keep.json': pack('b'),
        'logs/x': 'text',
        'a/logs': pack('c'),
      }),
    ).toEqual(['c', 'a', 'b']);
  });

  test('are ignored by an .indexignore only below its own directory', async () => {
    expect(
      await namesIn({
        'a/.indexignore': '/x.json\n*.txt',
        'a/x.json': 'text',
        'a/b/x.json': pack('a'),
        'a/b/c.txt': 'text',
        'x.json': pack('b'),
        'y.txt': pack('c'),
      }),
    ).toEqual(['a', 'b', 'c']);
  });

  test('are read through a link that stays inside', async () => {
    const directory = await writeCatalog({ 'a/one.json': pack('one') });
    await symlink('a/one.json', join(directory, 'two.json'));
    expect((await readCatalog(directory)).packages.map(({ place }) => place.file)).toEqual([
      'a/one.json',
      'two.json',
    ]);
  });

  test('must not be links that lead out, to a directory or to nothing', async () => {
    const directory = await writeCatalog({ 'a/one.json': pack('one') });
    await symlink('/etc/hostname', join(directory, 'out'));
    await symlink(`${directory}-beside`, join(directory, 'beside'));
    await symlink('a', join(directory, 'directory'));
    await symlink('loop', join(directory, 'loop'));
    await writeFile(`${directory}-beside`, pack('beside'));
    expect(await problemsOf(directory)).toEqual([
      expect.stringMatching(/^beside: is a link out of the catalog, to .*-beside$/),
      expect.stringMatching(/^directory: is a link to .*\/a, which is not a regular file$/),
      'loop: is a link to nothing',
      expect.stringMatching(/^out: is a link out of the catalog, to .*$/),
    ]);
  });

  test('must be in an existing directory', async () => {
    const directory = await writeCatalog({ a: '' });
    await expect(readCatalog(join(directory, 'a'))).rejects.toMatchObject({
      code: 'catalog.missing',
    });
    await expect(readCatalog(join(directory, 'b'))).rejects.toMatchObject({
      code: 'catalog.missing',
    });
  });
});

describe('problems of a catalog', () => {
  test('are reported all together, with file, document and byte', async () => {
    const broken = '{"schema": "olm.package" "name": "x"}';
    expect(
      await problemsIn({
        'a.json': `${pack('a')}\n${broken}\n${pack('b')}\n{"schema":"olm.bundle"`,
        'b.json': `${pack('c')}\n]]\n${pack('d')}`,
        'c/d.yaml': 'schema: x\n---\n- a\n---\na: [\n---\nfoo\n',
        'e': '[]',
      }),
    ).toEqual([
      expect.stringMatching(
        /^a\.json: document 2 at byte 36: is not valid JSON: Expected ','.* position 25/,
      ),
      'a.json: document 4 at byte 110: ends before its closing brace',
      'b.json: document 2 at byte 36: should begin with "{", but begins with "]]"',
      'c/d.yaml: document 2 at byte 14: should be an object, but is a list',
      expect.stringMatching(/^c\/d\.yaml: document 3 at byte 22: is not valid YAML: .*line/),
      'c/d.yaml: document 4 at byte 31: should be an object, but is the string "foo"',
      'e: document 1 at byte 0: should be an object, but is a list',
    ]);
  });

  test('include repeated keys, even if they differ in case', async () => {
    expect(
      await problemsIn({
        'a.json':
          '{"schema":"x","sc\\u0068ema":"x"}{"schema":"x","Name":"a","name":"b"}{"schema":"x","a":{"b":1,"b":2},"c":["a","a"]}',
        'b.yaml':
          'schema: x\nschema: y\n---\nschema: x\nSTRASSE: 1\nstraße: 2\n---\nschema: x\ni: 1\nı: 2\n',
      }),
    ).toEqual([
      'a.json: document 1 at byte 0: x: duplicate keys for key "schema": also written "schema"',
      'a.json: document 2 at byte 32: x b: duplicate keys for key "Name": also written "name"',
      'b.yaml: document 1 at byte 0: y: duplicate keys for key "schema": also written "schema"',
      'b.yaml: document 2 at byte 24: x: duplicate keys for key "STRASSE": also written "straße"',
    ]);
  });

  test('include documents of unknown identity', async () => {
    expect(
      await problemsIn({
        a: '{}{"schema":"","package":"foo","name":"bar"}{"schema":1}{"schema":null}{"schema":"x","package":2,"name":[]}',
      }),
    ).toEqual([
      'a: document 1 at byte 0: object has no schema',
      'a: document 2 at byte 2: object foo/bar has no schema',
      'a: document 3 at byte 44: schema should be a string, but is the number 1',
      'a: document 4 at byte 56: schema should be a string, but is null',
      'a: document 5 at byte 71: x: package should be a string, but is the number 2',
      'a: document 5 at byte 71: x: name should be a string, but is a list',
    ]);
  });

  test('name the bundle, even if its packages contradict each other', async () => {
    const of = (packageName: string) => ({
      type: 'olm.package',
      value: { packageName, version: '1.0.0' },
    });
    const documents = [
      bundle({ properties: [of('bar')] }),
      bundle({ properties: [of('foo'), of('foo')] }),
      bundle({ properties: [{ type: 'olm.package.required', value: { packageName: 'bar' } }] }),
      bundle({ properties: [{ type: 'olm.package', value: 'foo' }], image: undefined }),
      bundle({ relatedImages: [{ name: 'a', image: 5 }, 'b'] }),
      bundle({ name: 6 }),
    ];
    const lines = await problemsIn({ a: documents.map((one) => JSON.stringify(one)).join('') });
    expect(lines.map((line) => line.replace(/^a: document (\d) at byte \d+: /, '$1 '))).toEqual([
      '1 olm.bundle foo/foo.v1.0.0: properties[0].value.packageName should be "foo" as the bundle\'s package, but is "bar"',
      '2 olm.bundle foo/foo.v1.0.0: should have one property olm.package, but has 2',
      '3 olm.bundle foo/foo.v1.0.0: properties[0].value.versionRange should be a string, but is absent',
      '4 olm.bundle foo/foo.v1.0.0: image should be a string, but is absent',
      '4 olm.bundle foo/foo.v1.0.0: properties[0].value should be an object, but is the string "foo"',
      '5 olm.bundle foo/foo.v1.0.0: relatedImages[1] should be an object, but is the string "b"',
      '5 olm.bundle foo/foo.v1.0.0: relatedImages[0].image should be a string, but is the number 5',
      '6 olm.bundle foo: name should be a string, but is the number 6',
    ]);
  });

  test('name the place in a channel or a deprecation', async () => {
    expect(
      await problemsIn({
        'a.yaml': `schema: olm.channel
package: foo
name: alpha
entries: [{name: 4.1}, {skips: [a, 1], name: b, replaces: []}, x]
---
schema: olm.channel
name: ''
entries: {}
---
schema: olm.deprecations
package: foo
entries: [{message: m}, {reference: {name: x}}]
`,
      }),
    ).toEqual([
      'a.yaml: document 1 at byte 0: olm.channel foo/alpha: entries[2] should be an object, but is the string "x"',
      'a.yaml: document 1 at byte 0: olm.channel foo/alpha: entries[0].name should be a string, but is the number 4.1',
      'a.yaml: document 1 at byte 0: olm.channel foo/alpha: entries[1].replaces should be a string, but is a list',
      'a.yaml: document 1 at byte 0: olm.channel foo/alpha: entries[1].skips[1] should be a string, but is the number 1',
      'a.yaml: document 2 at byte 115: olm.channel: package should be a string, but is absent',
      'a.yaml: document 2 at byte 115: olm.channel: name should be a string, but is empty',
      'a.yaml: document 2 at byte 115: olm.channel: entries should be a list, but is an object',
      'a.yaml: document 3 at byte 160: olm.deprecations foo: entries[0].reference should be an object, but is absent',
      'a.yaml: document 3 at byte 160: olm.deprecations foo: entries[1].reference.schema should be a string, but is absent',
    ]);
  });
});

describe('the report on a hostile catalog', () => {
  test('has no control characters or extra lines from the catalog', async () => {
    const lines = await problemsIn({
      'a\nb': JSON.stringify({
        schema: 'olm.bundle\u001b[2J',
        package: 'x\ny\u009b' + 'z'.repeat(5000),
        name: 1,
      }),
    });
    expect(lines).toHaveLength(1);
    expect(lines[0]).not.toMatch(/\p{Cc}/u);
    expect(lines[0]?.length).toBeLessThan(1100);
    expect(lines[0]).toMatch(/^a\\u000ab: document 1 at byte 0: olm\.bundle\\u001b\[2J x\\u000ay/);
  });

  test('is at most a thousand lines long', async () => {
    const lines = await problemsIn({ a: '{}'.repeat(2345) });
    expect(lines).toHaveLength(1001);
    expect(lines.at(-1)).toBe('and 1345 more');
  });

  test('names a special file without opening it', async () => {
    const directory = await writeCatalog({ a: pack('a') });
    await runProcess('mkfifo', [join(directory, 'pipe')]);
    expect(await problemsOf(directory)).toEqual(['pipe: is not a regular file']);
  });

  test('names the files that cannot be read', async () => {
    const directory = await writeCatalog({ 'a': pack('a'), 'b/c': pack('c'), 'd': 'x' });
    await chmod(join(directory, 'a'), 0);
    await chmod(join(directory, 'b'), 0);
    const problems = await asUser([scratch, directory], () => problemsOf(directory));
    expect(problems).toEqual([
      'a: cannot be read by this user',
      'b: cannot be read by this user',
      'd: document 1 at byte 0: should be an object, but is the string "x"',
    ]);
    await chmod(join(directory, 'b'), 0o700);
  });
});

describe('reading documents again', () => {
  test('fails if a file has become shorter', async () => {
    const directory = await writeCatalog({ a: `${pack('a')}${pack('b')}` });
    const places = (await readCatalog(directory)).packages.map(({ place }) => place);
    await writeFile(join(directory, 'a'), pack('a'));
    await expect(readDocuments(directory, places, () => undefined)).rejects.toMatchObject({
      code: 'catalog.changed',
    });
  });

  test('hands the documents over file by file', async () => {
    const directory = await writeCatalog({ a: `${pack('a')}${pack('b')}`, c: pack('c') });
    const places = (await readCatalog(directory)).packages.map(({ place }) => place);
    const order: string[] = [];
    await readDocuments(
      directory,
      [places[2], places[1], places[0]] as CatalogPlace[],
      async (bytes, { file, number }) => {
        await Promise.resolve();
        order.push(`${file} ${number} ${bytes.toString().slice(-3, -2)}`);
      },
    );
    expect(order).toEqual(['c 1 c', 'a 2 b', 'a 1 a']);
  });

  test('ends when the signal aborts', async () => {
    const signal = AbortSignal.abort(new Error('enough'));
    await expect(readCatalog(await writeCatalog({ a: pack('a') }), { signal })).rejects.toThrow(
      'enough',
    );
  });
});

const REAL = '../shared/data/fbc';

describe.skipIf(!existsSync(REAL))('published catalogs', () => {
  test('are read whole, and every document comes back byte for byte', async () => {
    const catalog = await readCatalog(REAL);
    expect(catalog.packages.map(({ name }) => name)).toEqual([
      'kubevirt-hyperconverged',
      'jaeger-product',
      'mtv-operator',
      'node-observability-operator',
    ]);
    expect(catalog.channels).toHaveLength(9);
    expect(catalog.bundles).toHaveLength(70);
    expect(catalog.bundles.filter(({ version }) => version === undefined)).toEqual([]);
    const names = new Set(catalog.bundles.map((one) => `${one.package}/${one.name}`));
    for (const { package: of, entries } of catalog.channels) {
      for (const { name } of entries) expect(names).toContain(`${of}/${name}`);
    }
    const file = 'jaeger-product.catalog.json';
    const places = Object.values(catalog)
      .flatMap((documents) => documents.map(({ place }) => place))
      .filter((place) => place.file === file)
      .sort((a, b) => a.offset - b.offset);
    const pieces: string[] = [];
    await readDocuments(REAL, places, (bytes) => void pieces.push(bytes.toString()));
    const text = await readFile(join(REAL, file), 'utf8');
    expect(pieces.join('').replaceAll(/\s/g, '')).toBe(text.replaceAll(/\s/g, ''));
  });
});
