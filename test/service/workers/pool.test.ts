import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import cluster from 'node:cluster';
import { expect, it } from 'vitest';
import { createPool } from '../../../src/service/workers/pool.ts';

it('a change waits for workers that have begun, even if they do not listen everywhere yet', async () => {
  const warnings: string[] = [];
  const pool = createPool({
    program: fileURLToPath(new URL('starting-worker.mjs', import.meta.url)),
    count: 1,
    warn: (message) => warnings.push(message),
  });
  const starting = pool.start({
    settings: {
      inner: '/nowhere',
      listeners: [],
      connections: 1,
      each: 1,
      tenant: 1,
      proxies: [],
    },
    reports: { answered: () => undefined, reading: () => undefined },
    listTenants: () => new Map(),
  });
  const [worker] = Object.values(cluster.workers ?? {});
  const started = expect(starting).rejects.toThrow('it ended (SIGKILL)');
  await once(worker ?? process, 'message');
  await pool.forget('an InfraEnv');
  await started;
  await pool.drain(AbortSignal.abort()).catch(() => undefined);
  expect(warnings.join()).toContain('a worker process ended (SIGKILL)');
});
