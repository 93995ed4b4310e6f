import { mkdir, mkdtemp, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createRedaction } from '../../../src/base/text/redact.ts';
import { digestOf, hexOf } from '../../../src/base/digest.ts';
import { openPartCache, type PartCache } from '../../../src/base/store/part-cache.ts';
import { addToPartStore, openFromPartStore } from '../../../src/media/serve/parts.ts';
import { openIsoBase } from '../../../src/media/serve/base.ts';
import type { VirtualBase } from '../../../src/media/serve/virtual.ts';
import { freePort } from '../../support/local-http.ts';
import { makeNightlyBase, noiseImage, writeNightly } from '../../support/nightly-medium.ts';
import { startNginx, type Nginx } from '../../support/nginx.ts';
import { requireTool } from '../../support/tools.ts';

const redaction = createRedaction();

const hasTools = requireTool('nginx') && requireTool('genisoimage');
const signal = new AbortController().signal;
const LAYER = 1_500_000;
/** What two ISOs of one base and two of three layers do not share: a layer, manifests, directories, the index. */
const OWN = LAYER + 500_000;

let directory: string;
let nginx: Nginx;
let url: string;
const at = (name: string): string => join(directory, name);
const iso = (name: string): string => at(`files/${name}.iso`);

beforeAll(async () => {
  if (!hasTools) return;
  directory = await mkdtemp(join(tmpdir(), 'sealift-virtual-'));
  await mkdir(at('files'));
  const basePath = await makeNightlyBase(directory, 'base', 10_000_000);
  for (const [name, layer] of [
    ['monday', 'one'],
    ['tuesday', 'two'],
  ] as const) {
    const image = noiseImage(['shared', 'common', layer], LAYER);
    const images = [{ name: 'etcd', source: 'quay.io/a/b', image }];
    await writeNightly(iso(name), { basePath, images });
  }
  const port = await freePort();
  nginx = await startNginx(directory, port, `access_log ${directory}/access.log combined;`);
  url = `http://127.0.0.1:${port}`;
});
afterAll(async () => {
  if (!hasTools) return;
  await nginx.kill();
  await rm(directory, { recursive: true, force: true });
});

/** Bytes that nginx sent since it was asked last, by its own log. */
async function takeSent(): Promise<number> {
  const log = await readFile(at('access.log'), 'utf8');
  await writeFile(at('access.log'), '');
  return [...log.matchAll(/" \d{3} (\d+) "/g)].reduce((sum, [, size]) => sum + Number(size), 0);
}

const openCache = (limit = 1 << 30): Promise<PartCache> =>
  openPartCache({ partSize: 4 << 20, directory: at('cache'), limit, warn: () => undefined });

const open = (text: string, cache: PartCache): Promise<VirtualBase> =>
  openIsoBase(text, {
    cache,
    host: { env: {}, redaction, cwd: directory, signal, emit: () => undefined },
  });

/** All bytes, in pieces that fit nothing. */
async function readAll({ size, fill }: Pick<VirtualBase, 'size' | 'fill'>): Promise<Buffer> {
  const bytes = Buffer.alloc(size, 'x');
  for (let offset = 0; offset < size; offset += 777_777) {
    await fill(bytes.subarray(offset, offset + 777_777), offset, signal);
  }
  return bytes;
}

describe.skipIf(!hasTools)('a remote ISO', () => {
  beforeEach(async () => {
    await rm(at('cache'), { recursive: true, force: true });
    await takeSent();
  });

  it('is fetched once for five readers, and the next nightly fetches only its new blobs', async () => {
    const cache = await openCache();
    const monday = await open(`${url}/monday.iso`, cache);
    const expected = digestOf(await readFile(iso('monday')));
    const all = await Promise.all(Array.from({ length: 5 }, () => readAll(monday)));
    expect(all.map(digestOf)).toEqual(Array.from({ length: 5 }, () => expected));
    const { size } = await stat(iso('monday'));
    const first = await takeSent();
    expect(first).toBeGreaterThan(size - 100_000);
    expect(first).toBeLessThan(size + 500_000);
    const tuesday = await open(`${url}/tuesday.iso`, cache);
    expect(digestOf(await readAll(tuesday))).toBe(digestOf(await readFile(iso('tuesday'))));
    expect(await takeSent()).toBeLessThan(OWN);
    await monday.close();
    await tuesday.close();
  });

  it('is read from the disk by a later run, which fetches damaged parts again', async () => {
    const cache = await openCache();
    const monday = await open(`${url}/monday.iso`, cache);
    await readAll(monday);
    await monday.close();
    await cache.close();
    const [damaged = '', short = ''] = await readdir(at('cache'));
    await truncate(at(`cache/${short}`), 100);
    const bytes = await readFile(at(`cache/${damaged}`));
    bytes.writeUInt8(255 - bytes.readUInt8(0), 0);
    await writeFile(at(`cache/${damaged}`), bytes);
    await takeSent();
    const again = await open(`${url}/monday.iso`, await openCache());
    expect(digestOf(await readAll(again))).toBe(digestOf(await readFile(iso('monday'))));
    const sent = await takeSent();
    expect(sent).toBeGreaterThanOrEqual(bytes.length - 32);
    expect(sent).toBeLessThan(5_000_000 + 500_000);
    await again.close();
  });

  it('is read correctly when it is larger than the cache, which stays within its limit', async () => {
    const limit = 5_000_000;
    const cache = await openCache(limit);
    const monday = await open(`${url}/monday.iso`, cache);
    const expected = digestOf(await readFile(iso('monday')));
    const all = await Promise.all([readAll(monday), readAll(monday)]);
    expect(all.map(digestOf)).toEqual([expected, expected]);
    await monday.close();
    await cache.close();
    let stored = 0;
    for (const name of await readdir(at('cache'))) stored += (await stat(at(`cache/${name}`))).size;
    expect(cache.size()).toBe(stored);
    expect(stored).toBeLessThanOrEqual(limit);
  });

  it('is refused when its bytes differ from its index', async () => {
    const bytes = await readFile(iso('monday'));
    const layer = noiseImage(['shared'], LAYER);
    const [blob = Buffer.alloc(0)] = [...layer.blobs.values()].filter(
      ({ length }) => length > LAYER,
    );
    bytes[bytes.indexOf(blob) + 1000] = 7;
    await writeFile(iso('wrong'), bytes);
    const wrong = await open(`${url}/wrong.iso`, await openCache());
    await expect(readAll(wrong)).rejects.toMatchObject({ code: 'source.wrong-bytes' });
    await wrong.close();
  });
});

describe.skipIf(!hasTools)('a folder of parts', () => {
  it('gives each ISO back, and grows only by the bytes that a new ISO does not share', async () => {
    const store = at('store');
    const monday = await addToPartStore(iso('monday'), store, { signal });
    const tuesday = await addToPartStore(iso('tuesday'), store, { signal });
    const again = await addToPartStore(iso('tuesday'), store, { signal });
    expect(tuesday.added).toBeLessThan(OWN);
    expect(again.added).toBe(0);
    for (const [name, { digest }] of [
      ['monday', monday],
      ['tuesday', tuesday],
    ] as const) {
      const base = await openFromPartStore(store, digest);
      expect(digestOf(await readAll(base))).toBe(digestOf(await readFile(iso(name))));
      const stored = await open(iso(name), await openCache());
      expect([base.size, base.digest]).toEqual([stored.size, stored.digest]);
      await stored.close();
    }
  });

  it('refuses an ISO that it does not have, and an ISO with a missing part', async () => {
    const store = at('store');
    const unknown = openFromPartStore(store, digestOf('unknown'));
    await expect(unknown).rejects.toMatchObject({ code: 'store.unknown-iso' });
    const { digest } = await addToPartStore(iso('monday'), store, { signal });
    const layer = noiseImage(['shared'], LAYER);
    for (const each of layer.blobs.keys()) {
      await writeFile(join(store, 'sha256', hexOf(each)), 'short');
    }
    await expect(openFromPartStore(store, digest)).rejects.toMatchObject({
      code: 'store.part-missing',
    });
  });
});
