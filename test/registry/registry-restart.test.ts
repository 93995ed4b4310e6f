import { createHash } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createRedaction } from '../../src/base/text/redact.ts';
import { createHttp } from '../../src/base/http/http.ts';
import { createRetries, type RetryEvent } from '../../src/base/retry.ts';
import { createRegistryClient } from '../../src/registry/client.ts';
import { readBlob } from '../../src/base/store/blob-source.ts';
import { startPlainRegistry, type PlainRegistry } from '../support/plain-registry.ts';
import { patternOf } from '../support/scripted-registry.ts';
import { requireTool } from '../support/tools.ts';

describe.skipIf(!requireTool('docker-registry'))('a download from a real registry', () => {
  let directory: string;
  let registry: PlainRegistry;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'restart-'));
    registry = await startPlainRegistry(directory);
  });
  afterEach(async () => {
    await registry.close();
    await rm(directory, { recursive: true });
  });

  async function upload(bytes: Buffer, digest: string): Promise<void> {
    const base = `http://${registry.host}`;
    const begun = await fetch(`${base}/v2/a/b/blobs/uploads/`, { method: 'POST' });
    const place = new URL(begun.headers.get('location') ?? '', base);
    place.searchParams.set('digest', digest);
    const done = await fetch(place, { method: 'PUT', body: new Uint8Array(bytes) });
    expect(done.status).toBe(201);
  }

  it('continues where it stopped when the registry is killed and restarted', async () => {
    const bytes = patternOf(16 * 1024 * 1024);
    const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}` as const;
    await upload(bytes, digest);
    const events: RetryEvent[] = [];
    const down: { restart?: Promise<void> } = {};
    const restart = async (): Promise<void> => {
      registry = await startPlainRegistry(directory, registry.host);
    };
    const http = createHttp({
      redaction: createRedaction(),
      env: {},
      retries: createRetries({
        onEvent: (event) => {
          events.push(event);
          down.restart ??= restart(); // not before its absence was noticed
        },
      }),
    });
    const client = createRegistryClient({ http, credentials: [], certsDirs: [] });
    const { signal } = new AbortController();
    const blob = { mediaType: 'application/octet-stream', digest, size: bytes.length };
    const sources = client.sourcesOf({ registry: registry.host, repository: 'a/b' });
    const read = Buffer.alloc(bytes.length);
    const offsets: number[] = [];
    for await (const chunk of readBlob(sources, blob, { offset: 0, signal })) {
      if (offsets.length === 0) await registry.kill();
      offsets.push(chunk.offset);
      read.set(chunk.bytes, chunk.offset);
    }
    await down.restart;
    await client.close();
    expect(read.equals(bytes)).toBe(true);
    expect(offsets).toEqual(offsets.toSorted((a, b) => a - b));
    expect(events.map(({ type }) => type)).toContain('retry');
    expect(events.at(-1)?.type).toBe('retry-over');
  });
});
