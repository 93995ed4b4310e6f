import { execFileSync } from 'node:child_process';
import { utimesSync } from 'node:fs';
import {
  link,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { hexOf } from '../../../src/base/digest.ts';
import {
  createSharedCache,
  type SharedCacheOptions,
} from '../../../src/base/store/shared-cache.ts';
import type { Descriptor } from '../../../src/registry/manifest.ts';
import { createTestClient } from '../../support/registry-client.ts';
import {
  patternOf,
  startScriptedRegistry,
  type ScriptedRegistry,
} from '../../support/scripted-registry.ts';

const SIZE = 300_000;
const right = patternOf(SIZE);
/** What only this user may read. */
const SECRET = patternOf(100_000, 7);
/** Begins as the blob does, so that whoever takes it asks for the rest alone. */
const SAME = right.subarray(0, 100_000);

let directory: string;
let cache: string;
let registry: ScriptedRegistry;
let blob: Descriptor;
let warnings: string[];

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'planted-'));
  cache = join(directory, 'cache');
  await mkdir(join(cache, 'partial'), { recursive: true });
  registry = await startScriptedRegistry();
  blob = registry.addBlob(right);
  warnings = [];
});
afterEach(async () => {
  await registry.close();
  await rm(directory, { recursive: true });
});

const partial = (name: string): string => join(cache, 'partial', `${hexOf(blob.digest)}.${name}`);

/** Brings blobs into the cache, and is given them from there. */
async function bringAll(
  blobs: readonly Descriptor[],
  patience: Pick<SharedCacheOptions, 'retryFor' | 'now'> = {},
): Promise<readonly (Buffer | undefined)[]> {
  const client = createTestClient();
  const { signal } = new AbortController();
  const warn = (message: string): void => void warnings.push(message);
  const { over } = createSharedCache({ directory: cache, signal, warn, ...patience });
  const source = over(client.sourcesOf({ registry: registry.host, repository: 'a/b' }));
  const given: (Buffer | undefined)[] = [];
  for (const one of blobs) {
    const found = await source.fileOf?.(one);
    given.push(found && (await readFile(found.path)));
  }
  await client.close();
  return given;
}

const bring = async (): Promise<Buffer | undefined> => (await bringAll([blob]))[0];

const ranges = (): readonly (string | undefined)[] =>
  registry.requestsOf('blobs').map(({ headers }) => headers.range);

const PLANTED: Readonly<Record<string, () => Promise<void>>> = {
  async 'a link to a file that only this user may read'() {
    await writeFile(join(directory, 'secret'), SAME, { mode: 0o600 });
    await symlink(join(directory, 'secret'), partial('x'));
  },
  async 'a hard link to a file that only this user may read'() {
    await writeFile(join(directory, 'secret'), SAME, { mode: 0o600 });
    await link(join(directory, 'secret'), partial('x'));
  },
  async 'a pipe'() {
    execFileSync('mkfifo', [partial('x')]);
    return Promise.resolve();
  },
  'a directory': () => mkdir(partial('x')).then(() => undefined),
};

describe('a partial file that another user planted in a shared cache', () => {
  it.each(Object.entries(PLANTED))('is not read if it is %s', async (_kind, plant) => {
    await plant();
    expect((await bring())?.equals(right)).toBe(true);
    expect([ranges(), warnings]).toEqual([[undefined], []]);
  });

  it('is continued if it is a file, regardless of who wrote it', async () => {
    await writeFile(partial('x'), SAME);
    expect((await bring())?.equals(right)).toBe(true);
    expect(ranges()).toEqual([`bytes=${SAME.length}-${right.length - 1}`]);
    expect(await readdir(join(cache, 'partial'))).toEqual([]);
  });

  it('costs no more than its own bytes if they are wrong', async () => {
    await writeFile(partial('x'), SECRET);
    expect((await bring())?.equals(right)).toBe(true);
    expect(ranges()).toEqual([
      `bytes=${SECRET.length}-${right.length - 1}`,
      `bytes=0-${SECRET.length - 1}`,
    ]);
  });
});

describe('a claim on a blob of a shared cache', () => {
  const claimOf = ({ digest }: Descriptor): string => join(cache, 'claims', hexOf(digest));
  /** A process of a machine that cannot be seen from here. */
  const ELSEWHERE = '1 1 feedfeedfeedfeed 0\n';
  beforeEach(async () => {
    await mkdir(join(cache, 'claims'));
    await writeFile(claimOf(blob), ELSEWHERE);
  });

  it('that somebody keeps touching is waited for by the clock of the reader, then the blob is fetched beside it', async () => {
    let time = 0;
    const now = (): number => {
      time += 1000;
      utimesSync(claimOf(blob), 2e9 - time, time); // no clock of the writer has a say
      return time;
    };
    expect(await bringAll([blob], { retryFor: 9000, now })).toEqual([right]);
    expect(time).toBeLessThan(15_000);
    expect(warnings).toEqual([
      `"${claimOf(blob)}" has been held for 9 s without its blob: from now on, this build also fetches what other builds claim`,
    ]);
    expect(await readFile(claimOf(blob), 'utf8')).toBe(ELSEWHERE);
    expect(await readdir(join(cache, 'sha256'))).toEqual([hexOf(blob.digest)]);
  });

  it('costs its time once a build, and no part of its holder is touched', async () => {
    const second = registry.addBlob(SECRET);
    await writeFile(claimOf(second), ELSEWHERE);
    await writeFile(partial('x'), SAME);
    let time = 0;
    const now = (): number => (time += 1000);
    expect(await bringAll([blob, second], { retryFor: 5000, now })).toEqual([right, SECRET]);
    expect(time).toBeLessThan(20_000);
    expect(warnings).toHaveLength(1);
    expect(ranges()).toEqual([undefined, undefined]);
    expect(await readFile(partial('x'))).toEqual(SAME);
  });

  it('of 3 GB is not read as a whole, and nobody waits for whoever wrote no name into it', async () => {
    await truncate(claimOf(blob), 3e9);
    expect(await bringAll([blob])).toEqual([right]);
    expect(warnings).toEqual([]);
    expect(await readdir(join(cache, 'claims'))).toEqual([]);
  });
});

describe('a folder of a shared cache', () => {
  it('is not used if it is a link, which could lead anywhere', async () => {
    await rm(join(cache, 'partial'), { recursive: true });
    await mkdir(join(directory, 'elsewhere'));
    await symlink(join(directory, 'elsewhere'), join(cache, 'partial'));
    expect(await bring()).toBeUndefined();
    expect(warnings).toEqual([expect.stringContaining('is not used')]);
    expect(await readdir(join(directory, 'elsewhere'))).toEqual([]);
  });
});
