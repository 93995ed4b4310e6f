import { execFileSync } from 'node:child_process';
import {
  chownSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createFile, createFileSync, openOwnFile } from '../../src/base/disk/open-file.ts';
import { writeFileAtomic } from '../../src/base/disk/files.ts';
import { LEASE, lockOutput } from '../support/lease.ts';
import type { PourResult } from '../../src/pour/pour.ts';
import { createSiteWriter } from '../../src/sites/state/writer.ts';
import { adoptOldState, makeStateDirectory } from '../../src/sites/state/directory.ts';
import { isRoot } from '../support/as-user.ts';
import { makeLayout, openFrom, pourAndPublish } from '../support/pour-layout.ts';

const VICTIM = 'what nobody may overwrite\n';
const MODE = 0o640;

let directory: string;
const at = (name: string): string => join(directory, name);
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'sealift-names-'));
  writeFileSync(at('victim'), VICTIM, { mode: MODE });
});
afterEach(() => {
  expect(readFileSync(at('victim'), 'utf8')).toBe(VICTIM);
  expect(statSync(at('victim')).mode & 0o7777).toBe(MODE);
  rmSync(directory, { recursive: true, force: true });
});

const makePipe = (name: string): void => {
  execFileSync('mkfifo', [at(name)]);
};

/** As long as the victim: a pour that wrote into it would not be seen by its size. */
const { layout, blobs } = makeLayout([5000, 100_000]);

const pour = (): Promise<PourResult> =>
  pourAndPublish({
    layout,
    openExtent: openFrom(blobs),
    output: at('x.iso'),
    lanes: 2,
    signal: new AbortController().signal,
  });

describe('a pour into a directory that others can write to', () => {
  it('does not write through a symbolic link in the place of its partial output', async () => {
    symlinkSync('victim', at('x.iso.partial'));
    await expect(pour()).rejects.toMatchObject({ code: 'file.not-regular' });
  });

  it('does not write into a file that has a second name', async () => {
    linkSync(at('victim'), at('x.iso.partial'));
    await expect(pour()).rejects.toMatchObject({ code: 'file.other-names' });
  });

  it('replaces links in place of its journal and of the names that earlier versions used', async () => {
    const names = ['partial.journal', 'partial.journal.new', 'partial.probe'];
    for (const name of names.slice(1)) symlinkSync('victim', at(`x.iso.${name}`));
    await pour();
    symlinkSync('victim', at('x.iso.partial.journal'));
    await pour();
    expect(readdirSync(directory)).toEqual([
      ...['victim', 'x.iso', 'x.iso.partial.journal.new', 'x.iso.partial.probe'],
    ]);
  });

  it('refuses a partial output whose journal is a link', async () => {
    writeFileSync(at('x.iso.partial'), '');
    symlinkSync('victim', at('x.iso.partial.journal'));
    await expect(pour()).rejects.toMatchObject({ code: 'file.not-regular' });
  });

  it('ends with an error if its partial output or its journal is a pipe', async () => {
    makePipe('x.iso.partial');
    await expect(pour()).rejects.toMatchObject({ code: 'file.not-regular' });
    rmSync(at('x.iso.partial'));
    writeFileSync(at('x.iso.partial'), '');
    makePipe('x.iso.partial.journal');
    await expect(pour()).rejects.toMatchObject({ code: 'file.not-regular' });
  });

  it.runIf(isRoot)('trusts neither a partial output nor a journal of another user', async () => {
    writeFileSync(at('x.iso.partial'), '');
    chownSync(at('x.iso.partial'), 65_534, 65_534);
    await expect(pour()).rejects.toMatchObject({ code: 'file.foreign' });
    chownSync(at('x.iso.partial'), 0, 0);
    writeFileSync(at('x.iso.partial.journal'), '{}');
    chownSync(at('x.iso.partial.journal'), 65_534, 65_534);
    await expect(pour()).rejects.toMatchObject({ code: 'file.foreign' });
  });
});

describe('a lock in a directory that others can write to', () => {
  it('is refused if it is a symbolic link', async () => {
    symlinkSync('victim', at('x.lock'));
    await expect(lockOutput(at('x.lock'))).rejects.toMatchObject({ code: 'file.not-regular' });
  });

  it('is refused if it is a pipe, without waiting for a writer', async () => {
    makePipe('x.lock');
    await expect(lockOutput(at('x.lock'))).rejects.toMatchObject({ code: 'file.not-regular' });
  });
});

describe('the state of configuration ISOs in a directory that others can write to', () => {
  it('is not kept in a directory that a link leads to', async () => {
    mkdirSync(at('elsewhere'), { mode: 0o755 });
    symlinkSync('elsewhere', at('_state'));
    await expect(makeStateDirectory(directory)).rejects.toMatchObject({
      code: 'file.not-directory',
    });
    expect(statSync(at('elsewhere')).mode & 0o777).toBe(0o755);
  });

  it.runIf(isRoot)('is not kept in a directory of another user', async () => {
    mkdirSync(at('_state'), { mode: 0o755 });
    chownSync(at('_state'), 65_534, 65_534);
    await expect(makeStateDirectory(directory)).rejects.toMatchObject({ code: 'file.foreign' });
    expect(statSync(at('_state')).mode & 0o777).toBe(0o755);
  });
});

describe.runIf(isRoot)('an earlier state of configuration ISOs that another user made', () => {
  it('gives no keys to a site', async () => {
    await makeStateDirectory(directory);
    mkdirSync(at('.sealift'));
    writeFileSync(at('.sealift/site.json'), '{}');
    for (const name of ['.sealift/site.json', '.sealift']) {
      chownSync(at(name), 65_534, 65_534);
      await expect(adoptOldState(directory, LEASE)).rejects.toMatchObject({ code: 'file.foreign' });
      chownSync(at(name), 0, 0);
    }
    expect(readdirSync(at('_state'))).toEqual(['README']);
  });
});

describe('the files of a site in a directory that others can write to', () => {
  const write = (): Promise<void> =>
    createSiteWriter({ requireHeld: () => Promise.resolve() }).write({
      shownAs: 'site.iso',
      directories: [at('site'), at('site/auth')],
      state: [],
      files: [{ path: at('site/auth/kubeconfig'), data: 'secret' }],
    });

  it('are not written to a directory that a link leads to', async () => {
    mkdirSync(at('elsewhere'));
    symlinkSync('elsewhere', at('site'));
    await expect(write()).rejects.toMatchObject({ code: 'config-iso.in-the-way' });
    expect(readdirSync(at('elsewhere'))).toEqual([]);
  });

  it.runIf(isRoot)('are not written to a directory of another user', async () => {
    mkdirSync(at('site'));
    chownSync(at('site'), 65_534, 65_534);
    await expect(write()).rejects.toMatchObject({ code: 'config-iso.in-the-way' });
    expect(readdirSync(at('site'))).toEqual([]);
  });

  it('replace links that have their names', async () => {
    mkdirSync(at('site/auth'), { recursive: true });
    symlinkSync(at('victim'), at('site/auth/kubeconfig'));
    await write();
    expect(readFileSync(at('site/auth/kubeconfig'), 'utf8')).toBe('secret');
  });
});

describe('the door to files', () => {
  it('creates no file through a link without a target', async () => {
    symlinkSync('nothing', at('link'));
    await expect(createFile(at('link'))).rejects.toMatchObject({ code: 'EEXIST' });
    expect(() => {
      createFileSync(at('link'));
    }).toThrow('EEXIST');
    await expect(openOwnFile(at('link'))).rejects.toMatchObject({ code: 'file.not-regular' });
    expect(readdirSync(directory).sort()).toEqual(['link', 'victim']);
  });

  it('replaces a link, and not its target', async () => {
    symlinkSync('victim', at('report.json'));
    await writeFileAtomic(at('report.json'), '{}');
    expect(readFileSync(at('report.json'), 'utf8')).toBe('{}');
  });

  it.each(['/dev/zero', '/'])('does not open %s, which is not a regular file', async (path) => {
    await expect(openOwnFile(path)).rejects.toMatchObject({ code: 'file.not-regular' });
  });

  it('truncates no file that the user already has', async () => {
    writeFileSync(at('own'), 'text');
    await (await openOwnFile(at('own'))).close();
    expect(readFileSync(at('own'), 'utf8')).toBe('text');
  });
});
