import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createRedaction } from '../../../src/base/text/redact.ts';
import { createHttp } from '../../../src/base/http/http.ts';
import type { Descriptor } from '../../../src/registry/manifest.ts';
import { DOWNLOAD_USERS, type DownloadTask } from '../../support/download-users.ts';
import {
  patternOf,
  startScriptedRegistry,
  type Script,
  type ScriptedRegistry,
} from '../../support/scripted-registry.ts';
import { createTestRetries } from '../../support/test-clock.ts';

const SIZE = 300_000;
const right = patternOf(SIZE);
const other = patternOf(SIZE, 2);
/** Wrong at the front, right at the end. */
const damaged = Buffer.concat([other.subarray(0, 100_000), right.subarray(100_000)]);
const CUT = { cutAfter: 1000 };
const DEAD = { cutAfter: 0 };

let directory: string;
let registry: ScriptedRegistry;
let blob: Descriptor;
let retries: ReturnType<typeof createTestRetries>;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'download-users-'));
  registry = await startScriptedRegistry();
  blob = registry.addBlob(right);
  retries = createTestRetries();
});
afterEach(async () => {
  await registry.close();
  await rm(directory, { recursive: true });
});

const taskOf = (options: Partial<DownloadTask> = {}): DownloadTask => ({
  blob,
  directory,
  repositories: [`${registry.host}/a/b`],
  http: createHttp({ redaction: createRedaction(), env: {}, retries }),
  signal: new AbortController().signal,
  ...options,
});

/** What goes wrong with the first, second, ... answer for the bytes; later ones are like the last, or right. */
function spoil(scripts: readonly Script[], later?: Script): void {
  registry.script(({ path }) =>
    path.includes('/blobs/')
      ? (scripts[registry.requestsOf('blobs').length - 1] ?? later)
      : undefined,
  );
}

/** From which byte each request asked. */
const starts = (): readonly number[] =>
  registry
    .requestsOf('blobs')
    .map(({ headers }) => Number(/^bytes=(\d+)-\d*$/.exec(headers.range ?? '')?.[1] ?? 0));

type Fault = {
  readonly fault: string;
  readonly scripts: readonly Script[];
  readonly asked: readonly number[];
};

const OVERCOME: readonly Fault[] = [
  { fault: 'cuts the connection', scripts: [CUT], asked: [0, 1000] },
  {
    fault: 'cuts the connection, and then ignores Range',
    scripts: [CUT, { ignoreRange: true }],
    asked: [0, 1000],
  },
  {
    fault: 'cuts the connection, and then answers 416 to one form of a range',
    scripts: [CUT, { status: 416 }],
    asked: [0, 1000, 1000],
  },
  {
    fault: 'cuts the connection, and then answers 416 to every range',
    scripts: [CUT, { status: 416 }, { status: 416 }],
    asked: [0, 1000, 1000, 0],
  },
  {
    fault: 'cuts the connection, and then starts over with another file',
    scripts: [CUT, { ignoreRange: true, body: other }],
    asked: [0, 1000, 0],
  },
  {
    fault: 'cuts the connection, and then continues with another file',
    scripts: [CUT, { body: other }],
    asked: [0, 1000, 0],
  },
  { fault: 'gives other bytes once', scripts: [{ body: other }], asked: [0, 0] },
  {
    fault: 'asks for patience',
    scripts: [{ status: 429, headers: { 'retry-after': '1' } }, { status: 503 }],
    asked: [0, 0, 0],
  },
  {
    fault: 'gives some bytes with each connection',
    scripts: Array<Script>(8).fill({ cutAfter: 20_000 }),
    asked: [0, 1, 2, 3, 4, 5, 6, 7, 8].map((count) => count * 20_000),
  },
];

type Refusal = Fault & { readonly exitCode: number };

const REFUSED: readonly Refusal[] = [
  { fault: 'gives other bytes always', scripts: [{ body: other }], asked: [0, 0], exitCode: 5 },
  {
    fault: 'announces more bytes than there are',
    scripts: [{ body: Buffer.concat([right, right]) }],
    asked: [0],
    exitCode: 5,
  },
  {
    fault: 'sends more bytes than there are',
    scripts: [{ body: Buffer.concat([right, right]), withoutLength: true }],
    asked: [0],
    exitCode: 5,
  },
  { fault: 'refuses', scripts: [{ status: 403 }], asked: [0], exitCode: 4 },
];

const byName = <F extends Fault>(faults: readonly F[]): readonly (readonly [string, F])[] =>
  faults.map((one) => [one.fault, one]);

describe.each(Object.entries(DOWNLOAD_USERS))('%s gets its bytes from one host', (_name, bring) => {
  it.each(byName(OVERCOME))('that %s', async (_fault, { scripts, asked }) => {
    spoil(scripts);
    expect((await bring(taskOf())).equals(right)).toBe(true);
    expect(starts()).toEqual(asked);
  });

  it.each(byName(REFUSED))('but not when it %s', async (_fault, { scripts, asked, exitCode }) => {
    spoil(scripts, scripts.at(-1));
    await expect(bring(taskOf())).rejects.toMatchObject({ exitCode });
    expect(starts()).toEqual(asked);
  });

  it('but gives up after ten minutes without a byte, and continues in the next run', async () => {
    spoil([{ cutAfter: 200_000 }], DEAD);
    await expect(bring(taskOf())).rejects.toMatchObject({
      code: 'registry.unreachable',
      exitCode: 4,
      message: expect.stringContaining('given up after 10 min') as string,
    });
    const waited = retries.clock.waits.reduce((sum, wait) => sum + wait, 0);
    expect(waited).toBeGreaterThan(598_000);
    expect(waited).toBeLessThanOrEqual(600_000);
    const before = registry.requestsOf('blobs').length;
    spoil([]);
    expect((await bring(taskOf())).equals(right)).toBe(true);
    expect(starts().slice(before)).toEqual([200_000]);
  });

  it('and starts over when an earlier run left a part of another file', async () => {
    spoil([{ body: other, cutAfter: 200_000 }], DEAD);
    await expect(bring(taskOf())).rejects.toMatchObject({ exitCode: 4 });
    const before = registry.requestsOf('blobs').length;
    spoil([]);
    expect((await bring(taskOf())).equals(right)).toBe(true);
    expect(starts().slice(before)).toEqual([200_000, 0]);
  });

  it('and ends within 2 s when it is aborted while nothing comes, and continues in the next run', async () => {
    spoil([{ stallAfter: 200_000 }]);
    const stop = new AbortController();
    const reason = new Error('called off');
    let tookAll = (): void => undefined;
    const hasAll = new Promise<void>((resolve) => (tookAll = resolve));
    const onBytes = (count: number): void => {
      if (count === 200_000) tookAll();
    };
    const end = bring(taskOf({ signal: stop.signal, onBytes })).catch((error: unknown) => error);
    await hasAll;
    const abortedAt = performance.now();
    stop.abort(reason);
    expect(await end).toBe(reason);
    expect(performance.now() - abortedAt).toBeLessThan(2000);
    spoil([]);
    expect((await bring(taskOf())).equals(right)).toBe(true);
    expect(starts()).toEqual([0, 200_000]);
  });
});

const OF_MIRRORS = Object.entries(DOWNLOAD_USERS).filter(([name]) => name !== 'a file by address');

describe.each(OF_MIRRORS)('%s gets its bytes from one of two repositories', (_name, bring) => {
  const both = (): DownloadTask =>
    taskOf({ repositories: [`${registry.host}/first`, `${registry.host}/second`] });
  /** Which repository each request asked, and from which byte. */
  const asked = (): readonly string[] =>
    registry
      .requestsOf('blobs')
      .map(({ path }, index) => `${path.split('/')[2] ?? ''} ${starts()[index] ?? 0}`);
  const spoilFirst = (script: Script): void => {
    registry.script(({ path }) => (path.includes('/first/blobs/') ? script : undefined));
  };

  it('when the other one of the same host gives wrong bytes', async () => {
    spoilFirst({ body: other });
    expect((await bring(both())).equals(right)).toBe(true);
    expect(asked()).toEqual(['first 0', 'second 0']);
  });

  it('when the other one gave wrong bytes and then refused: each is asked alone from byte 0', async () => {
    let count = 0;
    registry.script(({ path }) => {
      if (!path.includes('/first/blobs/')) return undefined;
      count += 1;
      return count % 2 === 1 ? { body: damaged, cutAfter: 150_000 } : { status: 403 };
    });
    expect((await bring(both())).equals(right)).toBe(true);
    expect(asked()).toEqual([
      ...['first 0', 'first 150000', 'second 150000'],
      ...['first 0', 'first 150000', 'second 0'],
    ]);
  });

  it('and names both when both give wrong bytes', async () => {
    registry.script(({ path }) => (path.includes('/blobs/') ? { body: other } : undefined));
    await expect(bring(both())).rejects.toMatchObject({ exitCode: 5, expected: blob.digest });
    expect(asked()).toEqual(['first 0', 'second 0', 'first 0', 'second 0']);
  });
});
