import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  encodeBits,
  encodeExplicit,
  encodeInteger,
  encodeNull,
  encodeOid,
  encodeSequence,
  encodeSet,
  encodeText,
  encodeTime,
  encodeTrue,
} from '../../../src/sites/identity/certificates.ts';
import { openssl } from '../../support/site-identity.ts';
import { requireTool } from '../../support/tools.ts';

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sealift-der-'));
});
afterAll(() => rm(directory, { recursive: true }));

/** Type and value of each element inside a sequence, as openssl has them. */
async function parse(...parts: readonly Uint8Array[]): Promise<string[]> {
  const file = join(directory, 'der');
  await writeFile(file, encodeSequence(...parts));
  const lines = (await openssl(['asn1parse', '-inform', 'DER', '-in', file])).split('\n');
  return lines.slice(1).map((line) =>
    line
      .replace(/^.*?(prim|cons): */, '')
      .replace(/ +/g, ' ')
      .trim(),
  );
}

describe.skipIf(!requireTool('openssl'))('openssl reads', () => {
  it('integers, which are positive regardless of their first bit', async () => {
    const numbers = [0n, 1n, 127n, 128n, 255n, 256n, 2n ** 63n - 1n, 2n ** 63n, 2n ** 2048n - 1n];
    const hex = numbers.map((one) => one.toString(16).toUpperCase());
    expect(await parse(...numbers.map(encodeInteger))).toEqual(
      hex.map((text) => `INTEGER :${text.length % 2 === 0 ? text : `0${text}`}`),
    );
  });

  it('object identifiers with arcs of one byte and of several', async () => {
    const oids = ['2.5.4.3', '1.2.840.113549.1.1.11', '1.3.6.1.5.5.7.3.2'];
    expect(await parse(...oids.map(encodeOid))).toEqual([
      ...['OBJECT :commonName', 'OBJECT :sha256WithRSAEncryption'],
      'OBJECT :TLS Web Client Authentication',
    ]);
  });

  it('texts, as PrintableString if possible', async () => {
    const texts = ['system:admin', 'ingress-operator@1', "a'b (c) +,-./:=?", 'ä', 'a_b', 'a*b'];
    expect((await parse(...texts.map(encodeText))).map((line) => line.split(' ')[0])).toEqual([
      ...['PRINTABLESTRING', 'UTF8STRING', 'PRINTABLESTRING', 'UTF8STRING', 'UTF8STRING'],
      'UTF8STRING',
    ]);
  });

  it('dates of two centuries', async () => {
    const dates = ['1970-01-01T00:00:00Z', '2049-12-31T23:59:59Z', '2050-01-01T00:00:00Z'];
    expect(await parse(...dates.map((date) => encodeTime(Date.parse(date) / 1000)))).toEqual([
      ...['UTCTIME :700101000000Z', 'UTCTIME :491231235959Z', 'GENERALIZEDTIME :20500101000000Z'],
    ]);
  });

  it('elements within elements', async () => {
    const parts = [encodeSet(encodeTrue()), encodeNull(), encodeExplicit(3, encodeNull())];
    expect(await parse(...parts, encodeBits(Uint8Array.of(0xa4), 2))).toEqual([
      ...['SET', 'BOOLEAN :255', 'NULL', 'cont [ 3 ]', 'NULL', 'BIT STRING'],
    ]);
  });

  it.each([
    [127, 2],
    [128, 3],
    [255, 3],
    [256, 4],
    [65_535, 4],
    [65_536, 5],
    [1 << 24, 6],
  ])('an element of %i bytes after %i others', async (size, head) => {
    const file = join(directory, 'large');
    await writeFile(file, encodeBits(new Uint8Array(size - 1)));
    const text = await openssl(['asn1parse', '-inform', 'DER', '-in', file]);
    expect(text.trim()).toMatch(new RegExp(`^0:d=0 +hl=${head} l= *${size} prim: BIT STRING *$`));
  });
});
