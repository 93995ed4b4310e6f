import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { digestOf, hexOf } from '../../src/base/digest.ts';
import { type RandomAccess, requireInside } from '../../src/base/random-access.ts';
import { encodeSmallIso } from '../../src/iso/index.ts';
import { digestCanonicalJson, formatReadableJson, type Json } from '../../src/base/text/json.ts';
import { proveImage } from '../../src/media/proof.ts';
import { readGivenDigest } from '../../src/media/published-digest.ts';
import { verifySites } from '../../src/media/verify-sites.ts';
import { verifyIso } from '../../src/media/verify.ts';
import type { Verification, VerifyOptions } from '../../src/media/verify-contents.ts';
import { runCommand } from '../support/run-command.ts';
import { makeMedium } from '../support/medium.ts';
import { registerInspect } from '../../src/cli/medium/inspect.ts';

const options: VerifyOptions = {
  signal: new AbortController().signal,
  onProgress: () => undefined,
};

function makeConfigIso(of = 'alpha'): Buffer {
  const image = Buffer.from(
    encodeSmallIso({
      volumeId: 'cluster-config',
      epoch: 0,
      directories: [],
      files: [{ path: '/a', bytes: Buffer.alloc(5000, of) }],
    }),
  );
  proveImage(image, { product: 'config-iso', program: '1.0.0', of });
  return image;
}

const inMemory = (bytes: Buffer, isDevice = false): RandomAccess => ({
  path: 'alpha.iso',
  size: bytes.length,
  isDevice,
  read(offset, size, buffer = Buffer.alloc(size)) {
    requireInside({ offset, size }, bytes.length);
    bytes.copy(buffer, 0, offset, offset + size);
    return Promise.resolve(buffer.subarray(0, size));
  },
  close: () => Promise.resolve(),
});

const verify = (bytes: Buffer): Promise<Verification> => verifyIso(inMemory(bytes), options);

/** ECMA-119 8.4.32: BP 884 to 1395 of the primary volume descriptor. */
const FIELD = { start: 16 * 2048 + 883, end: 16 * 2048 + 1395 };

/** The ISO with other text in its proof. */
function withProof(change: (text: string) => string): Buffer {
  const image = makeConfigIso();
  const text = change(image.toString('latin1', FIELD.start, FIELD.end));
  image.write(text.padEnd(512).slice(0, 512), FIELD.start, 'latin1');
  return image;
}

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'sealift-proof-'));
});
afterAll(() => {
  rmSync(directory, { recursive: true, force: true });
});

describe('a proof', () => {
  it('is damaged, never absent, after a change of any of its bytes', async () => {
    const image = makeConfigIso();
    expect((await verify(image)).state).toBe('whole');
    for (let at = FIELD.start; at < FIELD.end; at++) {
      for (const byte of [32, 0, 50]) {
        const before = image[at] ?? 0;
        if (byte === before) continue;
        image[at] = byte;
        expect([at, byte, (await verify(image)).state]).toEqual([at, byte, 'damaged']);
        image[at] = before;
      }
    }
  });

  it('that names more bytes than there are is refused before they are read', async () => {
    const image = withProof((text) => text.replace(/size \d+(.*?) {9}/s, 'size 999999999999999$1'));
    const { state, problems } = await verify(image);
    expect({ state, problems }).toMatchObject({
      state: 'damaged',
      problems: [
        { kind: 'lost', problem: `ends at byte ${image.length} and should have 999999999999999` },
      ],
    });
  });

  it('that names fewer bytes than there are does not prove the others', async () => {
    const image = makeConfigIso();
    const longer = Buffer.concat([image, Buffer.from('more')]);
    expect(await verify(longer)).toMatchObject({
      state: 'not provable',
      compared: { bytes: image.length, of: longer.length },
    });
  });

  it('on a medium with an index is damage of what the index names', async () => {
    const folder = join(directory, 'indexed');
    mkdirSync(folder);
    const { path } = await makeMedium(folder);
    const bytes = Buffer.from(makeConfigIso().subarray(FIELD.start, FIELD.end));
    const state = await verifyIso(path, options);
    expect(state.state).toBe('whole');
    const image = readFileSync(path);
    image.set(bytes, FIELD.start);
    writeFileSync(path, image);
    expect((await verifyIso(path, options)).state).toBe('damaged');
  });

  it('of a newer format is said to be one, by verify and by inspect', async () => {
    const newer = (text: string): string => text.replaceAll('sealift proof 1', 'sealift proof 2');
    const image = withProof(newer);
    expect(await verify(image)).toMatchObject({
      state: 'not provable',
      because: 'no proof',
      notCompared: [
        expect.stringMatching(/: a newer version of sealift made the medium$/) as string,
      ],
    });
    const half = withProof((text) => text.replace('sealift proof 1', 'sealift proof 2'));
    expect((await verify(half)).state).toBe('damaged');
    writeFileSync(join(directory, 'newer.iso'), image);
    const { stdout } = await runCommand(registerInspect, ['inspect', 'newer.iso'], {
      cwd: directory,
    });
    expect(stdout).toContain('a newer version of sealift made the medium');
  });
});

/** The index in a format of the future, with its digest. */
function formatNewer(index: Readonly<Record<string, Json>>): string {
  const members = Object.entries(index).filter(([name]) => name !== 'digest');
  const content = { ...Object.fromEntries(members), format: 99 };
  return formatReadableJson({ ...content, digest: digestCanonicalJson(content) });
}

describe('an index of a newer format', () => {
  it('is said to be one, and is damaged if its digest is wrong', async () => {
    const withFormat = async (
      name: string,
      change: (index: Readonly<Record<string, Json>>) => string,
    ) => {
      const folder = join(directory, name);
      mkdirSync(folder);
      const { path } = await makeMedium(folder, (text) =>
        change(JSON.parse(text) as Readonly<Record<string, Json>>),
      );
      return verifyIso(path, options);
    };
    const newer = await withFormat('newer', (index) => formatNewer(index));
    expect(newer).toMatchObject({
      state: 'not provable',
      notCompared: [
        expect.stringMatching(/: a newer version of sealift made the medium$/) as string,
      ],
    });
    const damaged = await withFormat('damaged', (index) =>
      JSON.stringify({ ...index, format: 99 }),
    );
    expect(damaged.state).toBe('damaged');
  });
});

describe('a given digest', () => {
  const given = (text: string): Promise<string> => {
    const path = join(directory, 'SHA256SUMS');
    writeFileSync(path, text);
    return readGivenDigest('SHA256SUMS', { iso: 'media/alpha.iso', path });
  };
  const hexes = ['a', 'b', 'c'].map((digit) => digit.repeat(64));

  it('is that of the ISO in a file that lists several', async () => {
    const lines = ['beta.iso', 'alpha.iso', 'gamma.iso'].map((name, at) => `${hexes[at]}  ${name}`);
    expect(await given(lines.join('\n'))).toBe(`sha256:${hexes[1]}`);
  });

  it('is refused if a file lists several and not the ISO, and taken if it lists one', async () => {
    const [one, other] = ['beta.iso', 'gamma.iso'].map((name, at) => `${hexes[at]}  ${name}\n`);
    await expect(given(`${one}${other}`)).rejects.toMatchObject({ code: 'verify.no-digest' });
    expect(await given(one ?? '')).toBe(`sha256:${hexes[0]}`);
  });

  it('is that of the volume on a device, which is larger', async () => {
    const image = makeConfigIso();
    const volume = image.readUInt32LE(16 * 2048 + 80) * 2048;
    const published = () => Promise.resolve(digestOf(image.subarray(0, volume)));
    const device = Buffer.concat([image, Buffer.alloc(100_000, 7)]);
    const given = { ...options, published, isGiven: true };
    expect(await verifyIso(inMemory(device, true), given)).toMatchObject({ state: 'whole' });
    device[20 * 2048] = (device[20 * 2048] ?? 0) ^ 1;
    expect(await verifyIso(inMemory(device, true), given)).toMatchObject({ state: 'damaged' });
  });
});

describe('a folder of configuration ISOs', () => {
  const [alpha, beta] = [makeConfigIso('alpha'), makeConfigIso('beta')];
  const entry = (iso: string, bytes: Buffer) => ({ iso, sha256: hexOf(digestOf(bytes)) });
  const good = JSON.stringify({ sites: [entry('alpha.iso', alpha), entry('beta.iso', beta)] });

  function check(list: string | undefined, isos: Readonly<Record<string, Buffer>>) {
    const folder = mkdtempSync(join(directory, 'sites-'));
    if (list !== undefined) writeFileSync(join(folder, 'sites.json'), list);
    for (const [name, bytes] of Object.entries(isos)) writeFileSync(join(folder, name), bytes);
    return verifySites(folder, options);
  }

  it('is whole if every ISO is the one of the list', async () => {
    expect(await check(good, { 'alpha.iso': alpha, 'beta.iso': beta })).toMatchObject({
      state: 'whole',
      damaged: [],
    });
  });

  it('is damaged if an ISO is absent, from another run, or that of another site', async () => {
    const absent = await check(good, { 'alpha.iso': alpha });
    expect(absent.damaged).toEqual([
      { iso: 'beta.iso', problem: 'is in sites.json, and does not exist' },
    ]);
    const more = await check(good, { 'alpha.iso': alpha, 'beta.iso': beta, 'x.iso': beta });
    expect(more.damaged).toMatchObject([{ iso: 'x.iso' }]);
    const swapped = await check(good, { 'alpha.iso': beta, 'beta.iso': alpha });
    const other = await check(good, { 'alpha.iso': makeConfigIso('gamma'), 'beta.iso': beta });
    expect(other.damaged).toEqual([
      { iso: 'alpha.iso', problem: 'is whole, but from another run' },
    ]);
    expect(swapped.damaged).toEqual([
      { iso: 'alpha.iso', problem: 'has the bytes of beta.iso' },
      { iso: 'beta.iso', problem: 'has the bytes of alpha.iso' },
    ]);
  });

  it('names an ISO that cannot be read, and judges the others', async () => {
    const folder = mkdtempSync(join(directory, 'sites-'));
    writeFileSync(join(folder, 'sites.json'), good);
    mkdirSync(join(folder, 'alpha.iso'));
    writeFileSync(join(folder, 'beta.iso'), beta);
    const { damaged } = await verifySites(folder, options);
    expect(damaged.map(({ iso }) => iso)).toEqual(['alpha.iso']);
  });

  it.each([
    ['absent', undefined],
    ['empty', ''],
    ['cut off', good.slice(0, 40)],
    ['without sites', '{"sites":[]}'],
    ['of another form', '[1, 2]'],
    ['without digests', '{"sites":[{"iso":"alpha.iso"}]}'],
    ['with a digest of another form', '{"sites":[{"iso":"alpha.iso","sha256":"sha256:00"}]}'],
    ['with an ISO twice', JSON.stringify({ sites: [entry('a.iso', alpha), entry('a.iso', beta)] })],
  ])('is not judged by a list that is %s', async (_what, list) => {
    await expect(check(list, { 'alpha.iso': alpha })).rejects.toMatchObject({
      code: 'verify.no-list',
      exitCode: 3,
    });
  });
});
