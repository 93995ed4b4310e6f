import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { streamDocuments } from '../../../src/fbc/read/documents.ts';
import type { StreamedDocument, StreamOptions } from '../../../src/fbc/read/documents.ts';
import { runs } from '../../support/properties.ts';

let scratch: string;
let path: string;
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'sealift-document-stream-'));
  path = join(scratch, 'file');
});
afterAll(() => rm(scratch, { recursive: true }));

async function stream(
  text: string | Buffer,
  options: Partial<StreamOptions> = {},
): Promise<readonly StreamedDocument[]> {
  await writeFile(path, text);
  const documents: StreamedDocument[] = [];
  for await (const one of streamDocuments(path, { file: 'file', ...options })) documents.push(one);
  return documents;
}

const valuesOf = (documents: readonly StreamedDocument[]): readonly unknown[] =>
  documents.map(({ result }) => ('problem' in result ? result.problem : result.value));

const problemOf = (documents: readonly StreamedDocument[]): string | undefined => {
  const last = documents.at(-1)?.result;
  return last !== undefined && 'problem' in last ? last.problem : undefined;
};

const chunkSize = fc.integer({ min: 1, max: 40 });

/** Characters that decide, and those of two, three and four bytes. */
const trickyText = fc
  .array(
    fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      '"',
      '\\',
      ',',
      ':',
      '\n',
      '\n---\n',
      'é',
      '€',
      '😀',
      'a',
      '\u0000',
    ),
  )
  .map((parts) => parts.join(''));
const trickyValue = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    trickyText,
    fc.double({ noDefaultInfinity: true, noNaN: true }),
    fc.constantFrom(null, true, false),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(trickyText, tie('value'), { maxKeys: 4 }),
  ),
})).value;
const jsonText = fc
  .tuple(
    fc.dictionary(trickyText, trickyValue, { maxKeys: 5 }),
    fc.constantFrom(undefined, 1, 4, '\t'),
  )
  .map(([value, indent]) => JSON.stringify(value, undefined, indent));
const separator = fc.constantFrom('', ' ', '\n', '\r\n', '\n\n\t');

describe('a stream of JSON objects', () => {
  test('is split where JSON.parse would end each object, regardless of chunk borders', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(separator, jsonText)), chunkSize, async (parts, size) => {
        const text = Buffer.from(parts.flat().join(''));
        const documents = await stream(text, { chunkSize: size });
        const texts = parts.map(([, json]) => json);
        expect(valuesOf(documents)).toEqual(texts.map((json) => JSON.parse(json) as unknown));
        const places = documents.map(({ place }) => place);
        expect(places.map(({ number }) => number)).toEqual(texts.map((_, index) => index + 1));
        expect(
          places.map((place) => text.toString('utf8', place.offset, place.offset + place.size)),
        ).toEqual(texts);
      }),
      { numRuns: runs(120) },
    );
  });

  test('gives the outermost keys in order, and repeated keys twice', async () => {
    const member = fc.tuple(trickyText, trickyValue);
    await fc.assert(
      fc.asyncProperty(fc.array(member), chunkSize, async (members, size) => {
        const json = members.map(
          ([key, value]) => `${JSON.stringify(key)}: ${JSON.stringify(value)}`,
        );
        const [document] = await stream(`{${json.join(' ,\n')}}`, { chunkSize: size });
        expect(document?.result).toMatchObject({ keys: members.map(([key]) => key) });
      }),
      { numRuns: runs(100) },
    );
  });

  test('with a changed byte is read to its end or to a problem', async () => {
    const parts = fc.array(fc.tuple(separator, jsonText), { minLength: 1 });
    const change = fc.tuple(
      fc.nat(),
      fc.constantFrom(...Buffer.from('{}[]",\\:-# \n\u0000x\u00ff')),
    );
    await fc.assert(
      fc.asyncProperty(parts, change, async (texts, [at, byte]) => {
        const text = Buffer.from(texts.flat().join(''));
        text[at % text.length] = byte;
        let end = 0;
        for (const { place } of await stream(text, { chunkSize: 7 })) {
          expect(place.offset).toBeGreaterThanOrEqual(end);
          end = place.offset + place.size;
        }
        expect(end).toBeLessThanOrEqual(text.length);
      }),
      { numRuns: runs(120) },
    );
  });
});

describe('a stream of YAML documents', () => {
  const yamlText = fc.constantFrom(
    'a: 1\n',
    'a: |\n  text\n  --- text\n',
    'a: "{"\nb: [1, 2]\n',
    '# only a comment\n',
    'é: "😀"\n# after\n',
    '- ---x\n',
    '"---": x\n',
    '\n\n  a: 1\n  b: 2\n',
  );
  const marker = fc.constantFrom('---\n', '--- # comment\n', '---\r\n', '---   \n', '---\n\n---\n');

  test('is split at its markers, regardless of chunk borders', async () => {
    await fc.assert(
      fc.asyncProperty(
        yamlText,
        fc.array(fc.tuple(marker, yamlText)),
        chunkSize,
        async (first, more, size) => {
          const text = [first, ...more.flat()].join('');
          const wanted = parseAllDocuments(text).map((one) => one.toJS() as unknown);
          const documents = await stream(text, { chunkSize: size });
          expect(valuesOf(documents)).toEqual(wanted.filter((value) => value !== null));
          const bytes = Buffer.from(text);
          for (const { place, result } of documents) {
            const own = bytes.toString('utf8', place.offset, place.offset + place.size);
            expect(parseAllDocuments(own).map((one) => one.toJS() as unknown)).toEqual([
              'value' in result ? result.value : undefined,
            ]);
          }
        },
      ),
      { numRuns: runs(100) },
    );
  });
});

describe('a hostile file', () => {
  const nested = (depth: number): string => `{"a":${'['.repeat(depth)}${']'.repeat(depth)}}`;

  test('may nest JSON a thousand levels deep, and no deeper', async () => {
    expect(problemOf(await stream(nested(999)))).toBeUndefined();
    expect(valuesOf(await stream(`${nested(1000)}{}${nested(300_000)}`))).toEqual([
      'is nested 1001 levels deep, but at most 1000 are read',
      {},
      'is nested 300001 levels deep, but at most 1000 are read',
    ]);
  });

  test('cannot nest YAML without limit', async () => {
    const problems = valuesOf(
      await stream(`a: ${'['.repeat(100_000)}\n---\n${'- '.repeat(100_000)}\n---\nb: 1\n`),
    );
    expect(problems).toEqual([
      expect.stringMatching(/^is not valid YAML/),
      expect.stringMatching(/^is not valid YAML/),
      { b: 1 },
    ]);
  });

  test('cannot expand aliases without limit', async () => {
    const levels = Array.from({ length: 9 }, (_, level) => {
      const items =
        level === 0
          ? 'x'
          : Array(9)
              .fill(`*l${level - 1}`)
              .join(',');
      return `l${level}: &l${level} [${items}]\n`;
    });
    expect(problemOf(await stream(levels.join('')))).toMatch(/alias/i);
  });

  test('cannot have a document that is larger than the limit', async () => {
    const large = 'a'.repeat(200);
    const options = { maxSize: 100, chunkSize: 16 };
    const problem = 'has more than 100 bytes, the most that is read';
    expect(problemOf(await stream(`{}{"a":"${large}"}{}`, options))).toBe(problem);
    expect(problemOf(await stream(`a: 1\n---\nb: ${large}\n`, options))).toBe(problem);
    expect(problemOf(await stream(`{}{"a":"${'a'.repeat(80)}"}{}`, options))).toBeUndefined();
  });

  test('cannot have more YAML nodes than fit in memory', async () => {
    expect(problemOf(await stream(`a: [${'b,'.repeat(600_000)}]`))).toBe(
      'has 600002 places where a YAML node may begin, but at most 250000 are read',
    );
  });

  test('of binary data is one document that is not an object', async () => {
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, index) => index));
    expect(await stream(bytes)).toHaveLength(1);
    expect(valuesOf(await stream(Buffer.from('\ufeff{"a":1}', 'utf16le')))).toEqual([
      expect.any(String),
    ]);
  });

  test('cannot change the prototype of what is read', async () => {
    for (const text of ['{"__proto__":{"schema":"x"}}', '? __proto__\n: {schema: x}\n']) {
      const [value] = valuesOf(await stream(text));
      expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    }
  });
});
