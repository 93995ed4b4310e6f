import { mkdir, rmdir } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { takeLease } from '../../src/base/disk/lease.ts';
import { SealiftError } from '../../src/base/errors.ts';
import { pourIso, publishPour } from '../../src/pour/pour.ts';
import { openFrom, REGISTRY } from './pour-layout.ts';
import { digestOf } from '../../src/base/digest.ts';

/**
 * A process of its own, mostly in a namespace of process ids of its own:
 *
 *     lease-user hold LOCK LIMIT     takes a lease and keeps it until it is killed
 *     lease-user share LOCK LIMIT    waits for a lease and proves that no other process has it meanwhile
 *     lease-user pour ISO LETTER     pours 8 MiB of a letter without any lease, and publishes it
 *
 * Prints a line for each thing that happens.
 */
const [act = '', path = '', word = ''] = process.argv.slice(2);
const { signal } = new AbortController();
const say = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

const lease = {
  signal,
  limit: Number(word),
  warn: (message: string): void => {
    say(`warn ${message}`);
  },
};

async function share(): Promise<void> {
  const { release } = await takeLease(path, { ...lease, wait: true });
  await mkdir(`${path}.held`).catch(() => {
    say('clash');
  });
  await sleep(20);
  await rmdir(`${path}.held`);
  say('held');
  await release();
}

async function pour(): Promise<void> {
  const blobs = new Map<string, Buffer>();
  const size = 1 << 20;
  const extents = Array.from({ length: 8 }, (_, at) => {
    const bytes = Buffer.alloc(size, `${word}${at}`);
    const digest = digestOf(bytes);
    blobs.set(digest, bytes);
    return { offset: at * size, size, source: { kind: 'blob' }, paths: [], digest } as const;
  });
  const give = openFrom(blobs, { source: REGISTRY });
  await pourIso({
    layout: { size: 8 * size, extents },
    output: path,
    lanes: 1,
    signal,
    warn: lease.warn,
    async openExtent(extent, options) {
      say('pours');
      await sleep(word === 'a' ? 2500 : 1);
      return give(extent, options);
    },
  });
  await publishPour(path);
  say('published');
}

try {
  if (act === 'share') await share();
  if (act === 'pour') await pour();
  if (act === 'hold') {
    await takeLease(path, lease);
    say('held');
    await sleep(600_000);
  }
} catch (error) {
  say(error instanceof SealiftError ? `${error.code} ${error.message}` : String(error));
}
