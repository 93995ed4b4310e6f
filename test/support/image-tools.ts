import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRedaction } from '../../src/base/text/redact.ts';
import type { StageContext } from '../../src/engine/stage.ts';
import { createFileDigests, type FileDigests } from '../../src/base/disk/file-digests.ts';
import { createHttp, type Http } from '../../src/base/http/http.ts';
import { createBlobCache, type BlobCache } from '../../src/base/store/blob-cache.ts';
import { createRegistryClient, type RegistryClient } from '../../src/registry/client.ts';
import { createStageContext } from './stage-context.ts';
import { createTestRetries } from './test-clock.ts';
import { serveImages, type ImageRegistry } from './image-registry.ts';

/** A registry in memory, and the real client and cache to read it with. */
export type ImageWorld = {
  readonly registry: ImageRegistry;
  readonly client: RegistryClient;
  readonly cache: BlobCache;
  readonly http: Http;
  readonly signal: AbortSignal;
  readonly digests: FileDigests;
  /** The same as `directory`. */
  readonly workDir: string;
  readonly context: StageContext;
  /** An empty directory, removed with the world. */
  readonly directory: string;
  readonly close: () => Promise<void>;
};

/** Nothing waits in it: what is tried again is tried again at once. */
export async function createImageWorld(): Promise<ImageWorld> {
  const registry = await serveImages();
  const directory = await mkdtemp(join(tmpdir(), 'images-'));
  const http = createHttp({ redaction: createRedaction(), env: {}, retries: createTestRetries() });
  const signal = AbortSignal.timeout(60_000);
  const client = createRegistryClient({
    http,
    credentials: [],
    certsDirs: [],
    insecureRegistries: [registry.host],
    concurrencyPerHost: 16,
  });
  return {
    registry,
    client,
    cache: createBlobCache(join(directory, 'blobs')),
    http,
    signal,
    directory,
    workDir: directory,
    digests: createFileDigests(join(directory, 'digests')),
    context: createStageContext(signal),
    async close() {
      await client.close();
      await registry.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
