import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createRedaction } from '../../../src/base/text/redact.ts';
import { digestOf } from '../../../src/base/digest.ts';
import { createHttp, type Http } from '../../../src/base/http/http.ts';
import { createRetries } from '../../../src/base/retry.ts';
import { DOWNLOAD_USERS, type DownloadTask } from '../../support/download-users.ts';
import { freePort } from '../../support/local-http.ts';
import { startNginx, type Nginx } from '../../support/nginx.ts';
import { patternOf } from '../../support/scripted-registry.ts';
import { requireTool } from '../../support/tools.ts';

const bytes = patternOf(300_000);
const digest = digestOf(bytes);
const blob = { mediaType: 'application/octet-stream', digest, size: bytes.length };
/** So many bytes come at once, then one each second; nginx counts those of its header, too. */
const AT_ONCE = 200_000;
const DRIPPING = `limit_rate_after ${AT_ONCE + 1000}; limit_rate 1;`;

let directory: string;
let port: number;
let nginx: Nginx;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'foreign-server-'));
  port = await freePort();
  nginx = await startNginx(directory, port, DRIPPING);
  await serve(bytes);
});
afterEach(async () => {
  await nginx.kill();
  await rm(directory, { recursive: true });
});

async function serve(content: Uint8Array): Promise<void> {
  const folder = join(directory, 'files/v2/a/b/blobs');
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, digest), content);
}

/** The door to HTTP, and the statuses of all answers with blobs. */
function watchHttp(onRetry: () => void): { readonly http: Http; readonly statuses: number[] } {
  const retries = createRetries({ onEvent: onRetry });
  const http = createHttp({ redaction: createRedaction(), env: {}, retries });
  const statuses: number[] = [];
  return {
    statuses,
    http: {
      ...http,
      async request(options) {
        const response = await http.request(options);
        if (options.url.pathname.includes('/blobs/')) statuses.push(response.status);
        return response;
      },
    },
  };
}

const taskOf = (options: Pick<DownloadTask, 'http' | 'signal' | 'onBytes'>): DownloadTask => ({
  blob,
  directory: join(directory, 'here'),
  repositories: [`127.0.0.1:${port}/a/b`],
  ...options,
});

describe.skipIf(!requireTool('nginx')).each(Object.entries(DOWNLOAD_USERS))(
  '%s gets its bytes from nginx',
  (_name, bring) => {
    /** Kills nginx in the middle of the bytes; it is there again when it was missed. */
    const bringWhileRestarting = async (more: string, content = bytes) => {
      let restarted: Promise<void> | undefined;
      let killed: Promise<void> | undefined;
      const restart = async (): Promise<void> => {
        await killed;
        await serve(content);
        nginx = await startNginx(directory, port, more);
      };
      const { http, statuses } = watchHttp(() => {
        restarted ??= restart();
      });
      const onBytes = (count: number): void => {
        if (count >= AT_ONCE) killed ??= nginx.kill();
      };
      const { signal } = new AbortController();
      const brought = await bring(taskOf({ http, signal, onBytes })).catch(
        (error: unknown) => error,
      );
      await restarted;
      return { brought, statuses };
    };

    beforeEach(async () => {
      await mkdir(join(directory, 'here'));
    });

    it('although it is killed in the middle, and continues them', async () => {
      const { brought, statuses } = await bringWhileRestarting('');
      expect(bytes.equals(brought as Buffer)).toBe(true);
      expect(statuses).toEqual([200, 206]);
    });

    it('although it is killed in the middle and then ignores Range', async () => {
      const { brought, statuses } = await bringWhileRestarting('max_ranges 0;');
      expect(bytes.equals(brought as Buffer)).toBe(true);
      expect(statuses).toEqual([200, 200]);
    });

    it('but not when it is killed in the middle and then has less', async () => {
      const { brought, statuses } = await bringWhileRestarting('', bytes.subarray(0, 1000));
      expect(brought).toMatchObject({ exitCode: 5 });
      expect(statuses.slice(0, 3)).toEqual([200, 416, 200]);
    });

    it('and ends within 2 s when it is aborted while they drip; the next run continues them', async () => {
      const stop = new AbortController();
      const reason = new Error('called off');
      let abortedAt = 0;
      const onBytes = (count: number): void => {
        if (count < AT_ONCE || stop.signal.aborted) return;
        abortedAt = performance.now();
        stop.abort(reason);
      };
      const { http } = watchHttp(() => undefined);
      const end = bring(taskOf({ http, signal: stop.signal, onBytes }));
      expect(await end.catch((error: unknown) => error)).toBe(reason);
      expect(performance.now() - abortedAt).toBeLessThan(2000);
      await nginx.kill();
      nginx = await startNginx(directory, port);
      const again = watchHttp(() => undefined);
      const task = taskOf({ http: again.http, signal: new AbortController().signal });
      expect(bytes.equals(await bring(task))).toBe(true);
      expect(again.statuses).toEqual([206]);
    });
  },
);
