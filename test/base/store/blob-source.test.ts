import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { digestOf } from '../../../src/base/digest.ts';
import { createRetries } from '../../../src/base/retry.ts';
import type { BlobSource } from '../../../src/base/store/blob-source.ts';
import type { Descriptor } from '../../../src/registry/manifest.ts';
import { readBlob } from '../../../src/base/store/blob-source.ts';
import {
  patternOf,
  startScriptedRegistry,
  type ScriptedRegistry,
} from '../../support/scripted-registry.ts';
import { createTestClient } from '../../support/registry-client.ts';

const MIB = 1024 * 1024;
const bytes = patternOf(3 * MIB);
const signal = new AbortController().signal;
let registry: ScriptedRegistry;
let client: ReturnType<typeof createTestClient>;
let sources: readonly BlobSource[];
let blob: Descriptor;

beforeEach(async () => {
  registry = await startScriptedRegistry();
  client = createTestClient();
  blob = registry.addBlob(bytes);
  sources = client.sourcesOf({ registry: registry.host, repository: 'a/b', digest: blob.digest });
});

afterEach(async () => {
  await client.close();
  await registry.close();
});

/** Puts the chunks where they say they belong, as a pour does. */
async function read(
  from: readonly BlobSource[],
  descriptor = blob,
  offset = 0,
): Promise<{ readonly bytes: Buffer; readonly restarts: number }> {
  const result = Buffer.alloc(descriptor.size);
  let end = offset;
  let restarts = 0;
  for await (const chunk of readBlob(from, descriptor, { offset, signal })) {
    if (chunk.offset !== end) restarts += 1;
    result.set(chunk.bytes, chunk.offset);
    end = chunk.offset + chunk.bytes.length;
  }
  return { bytes: result, restarts };
}

const ofBlobs = (path: string): boolean => path.includes('/blobs/');

describe('reading a blob', () => {
  it('starts at the requested offset', async () => {
    const { bytes: read2 } = await read(sources, blob, MIB);
    expect(read2.subarray(MIB).equals(bytes.subarray(MIB))).toBe(true);
    expect(registry.requestsOf('blobs')[0]?.headers.range).toBe(`bytes=${MIB}-${3 * MIB - 1}`);
    expect(registry.bytesServed()).toBe(2 * MIB + 2);
  });

  it('continues where a connection was cut, and asks the registry itself again', async () => {
    registry.script(({ path }, nth) =>
      ofBlobs(path) && nth === 1 ? { cutAfter: 1000 } : undefined,
    );
    const result = await read(sources);
    expect(result.bytes.equals(bytes)).toBe(true);
    expect(result.restarts).toBe(0);
    expect(registry.requestsOf('blobs').map(({ headers }) => headers.range)).toEqual([
      undefined,
      `bytes=1000-${3 * MIB - 1}`,
    ]);
    expect(client.statistics()[0]?.retries).toBe(1);
  });

  it('starts again at byte 0 if the peer ignores Range', async () => {
    registry.script(({ path }, nth) =>
      ofBlobs(path) ? { ignoreRange: true, ...(nth === 1 && { cutAfter: 1000 }) } : undefined,
    );
    const result = await read(sources);
    expect(result.bytes.equals(bytes)).toBe(true);
    expect(result.restarts).toBe(1);
  });

  it('accepts any number of broken connections while each brings a MiB', async () => {
    const large = registry.addBlob(patternOf(12 * MIB));
    registry.script(({ path }) => (ofBlobs(path) ? { cutAfter: MIB } : undefined));
    expect(digestOf((await read(sources, large)).bytes)).toBe(large.digest);
  });

  it('continues with a source as long as each connection brings one byte', async () => {
    const small = registry.addBlob(patternOf(50));
    registry.script(({ path }) => (ofBlobs(path) ? { cutAfter: 1 } : undefined));
    expect(digestOf((await read(sources, small)).bytes)).toBe(small.digest);
    expect(client.waits.every((wait) => wait <= 500)).toBe(true);
  });

  it('gives up a source that has brought no byte for ten minutes', async () => {
    registry.script(({ path }, nth) =>
      ofBlobs(path) ? { cutAfter: nth === 1 ? 1000 : 0 } : undefined,
    );
    await expect(read(sources)).rejects.toMatchObject({
      code: 'registry.unreachable',
      message: expect.stringMatching(/given up after 10 min 00 s without a byte$/) as string,
    });
    const waited = client.waits.reduce((sum, wait) => sum + wait, 0);
    expect(waited).toBeGreaterThan(599_000);
    expect(waited).toBeLessThanOrEqual(600_000);
  });

  it('counts bytes that a server without Range sends again as no progress', async () => {
    registry.script(({ path }) =>
      ofBlobs(path) ? { cutAfter: 1000, ignoreRange: true } : undefined,
    );
    await expect(read(sources)).rejects.toMatchObject({ code: 'registry.unreachable' });
    expect(client.waits.reduce((sum, wait) => sum + wait, 0)).toBeGreaterThan(599_000);
  });

  it('refuses a longer blob, with both sizes', async () => {
    const longer = Buffer.concat([bytes, Buffer.from('x')]);
    registry.script(({ path }) => (ofBlobs(path) ? { body: longer } : undefined));
    await expect(read(sources)).rejects.toMatchObject({
      code: 'blob.too-long',
      expected: String(bytes.length),
      found: String(longer.length),
    });
    registry.script(({ path }) =>
      ofBlobs(path) ? { body: longer, withoutLength: true } : undefined,
    );
    await expect(read(sources)).rejects.toMatchObject({
      code: 'blob.too-long',
      found: `more than ${bytes.length}`,
    });
  });

  it('refuses a shorter blob, with both sizes', async () => {
    const shorter = bytes.subarray(0, 1000);
    registry.script(({ path }) => (ofBlobs(path) ? { body: shorter } : undefined));
    await expect(read(sources)).rejects.toMatchObject({
      code: 'blob.too-short',
      expected: String(bytes.length),
      found: '1000',
    });
    registry.script(({ path }) =>
      ofBlobs(path) ? { body: shorter, withoutLength: true, ignoreRange: true } : undefined,
    );
    await expect(read(sources)).rejects.toMatchObject({ code: 'blob.too-short' });
  });

  it('continues right bytes with the next source', async () => {
    const broken: BlobSource = {
      name: 'broken',
      local: false,
      open: () =>
        Promise.resolve({
          offset: 0,
          body: Readable.from([bytes.subarray(0, 2 * MIB), Buffer.alloc(0)]),
        }),
    };
    const absent: BlobSource = {
      name: 'absent',
      local: true,
      open: () => Promise.resolve(undefined),
    };
    let opened = 0;
    const once: BlobSource = {
      ...broken,
      open: (...args) => {
        opened += 1;
        return opened === 1 ? broken.open(...args) : Promise.resolve(undefined);
      },
    };
    const result = await read([absent, once, ...sources]);
    expect(result.bytes.equals(bytes)).toBe(true);
    expect(registry.requestsOf('blobs')[0]?.headers.range).toBe(`bytes=${2 * MIB}-${3 * MIB - 1}`);
  });

  it('names the answer of every source when no source is left', async () => {
    registry.script(({ path }) => (ofBlobs(path) ? { status: 403 } : undefined));
    const absent: BlobSource = {
      name: 'cache',
      local: true,
      open: () => Promise.resolve(undefined),
    };
    const [only] = sources;
    const other = only ? [absent, only, { ...only, name: 'mirror.example' }] : [];
    await expect(read(other)).rejects.toThrow(/cache: .*127\.0\.0\.1:\d+: .*mirror\.example: /);
    await expect(read([absent, absent])).rejects.toMatchObject({ code: 'blob.unknown' });
  });

  it('ends with the reason of the signal', async () => {
    const controller = new AbortController();
    const chunks = readBlob(sources, blob, { offset: 0, signal: controller.signal });
    await chunks.next();
    controller.abort(new Error('enough'));
    await expect(
      (async () => {
        for await (const chunk of chunks) expect(chunk.bytes.length).toBeGreaterThan(0);
      })(),
    ).rejects.toThrow('enough');
  });

  it('of no bytes asks no source', async () => {
    const empty = registry.addBlob(new Uint8Array());
    expect((await read(sources, empty)).bytes).toHaveLength(0);
    expect(registry.requests).toHaveLength(0);
  });
});

describe('reading a small document', () => {
  const host = 'drips.example';
  /** The first answers come byte by byte, from where they were asked to begin. */
  const dripping = (times: number): BlobSource & { readonly asked: () => number } => {
    const retries = createRetries({ retryFor: 1500 });
    let asked = 0;
    return {
      name: host,
      local: false,
      asked: () => asked,
      openBudget: (ended) => retries.open(host, ended),
      open: (_, { offset }) => {
        asked += 1;
        if (asked > times)
          return Promise.resolve({ offset, body: Readable.from([bytes.subarray(offset)]) });
        const body = new Readable({ read: () => undefined });
        let at = offset;
        const drip = setInterval(() => body.push(bytes.subarray(at, ++at)), 5);
        body.once('close', () => {
          clearInterval(drip);
        });
        return Promise.resolve({ offset, body });
      },
    };
  };
  const readAll = async (source: BlobSource): Promise<number> => {
    let size = 0;
    const options = { offset: 0, signal, bodyTime: 200 };
    for await (const chunk of readBlob([source], blob, options)) size += chunk.bytes.length;
    return size;
  };

  it('from a registry that sends a byte now and then forever ends with an error', async () => {
    await expect(readAll(dripping(Infinity))).rejects.toMatchObject({
      code: 'registry.unreachable',
    });
  });

  it('continues where such a registry was cut off, if it then sends the rest', async () => {
    const source = dripping(1);
    expect(await readAll(source)).toBe(bytes.length);
    expect(source.asked()).toBe(2);
  });
});
