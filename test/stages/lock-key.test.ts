import { access, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Secret } from '../../src/base/secret.ts';
import type { BuildTools } from '../../src/stages/tools.ts';
import type { Lock } from '../../src/stages/resolved/record.ts';
import { formatLockSecrets } from '../../src/stages/resolved/record.ts';
import { claimLock, writeLock } from '../../src/stages/resolved/use.ts';
import { fakeDigest } from '../support/sparse-medium.ts';

const drawn = { stage: { value: 'drawn at random', fingerprint: fakeDigest('stage') } };
const sealKey = Buffer.alloc(32, 1);
const tools = { drawn: { list: () => drawn }, sealKey } as unknown as BuildTools;
const found = { places: { areas: {}, offsets: [] } } as unknown as Lock;

describe('the secrets of a lock', () => {
  let home: string;
  beforeEach(async () => {
    home = await mkdtemp(join(tmpdir(), 'sealift-lock-'));
  });
  afterEach(() => rm(home, { recursive: true }));
  const at = (name: string): string => join(home, name);
  const requestOf = (use: { readonly held?: Lock; readonly key?: Secret }) => {
    const lock = { path: at('sealift.lock.json'), isLocked: false, ...use };
    return { lock, output: at('x.iso'), inputs: [], workDir: at('work'), force: false };
  };

  it('that are encrypted are not replaced by plain text: without the key nothing is begun', async () => {
    const request = requestOf({ held: { ...found, secrets: 'encrypted' } });
    await expect(claimLock(request)).rejects.toMatchObject({ code: 'lock.key-missing' });
    await expect(writeLock(request, found, tools)).rejects.toThrow('encrypted');
    await expect(access(at('sealift.lock.secrets'))).rejects.toThrow('ENOENT');
    const isLocked = { ...request, lock: { ...request.lock, isLocked: true } };
    await claimLock(isLocked);
  });

  it('are not left in plain text beside a lock that has them encrypted', async () => {
    const key = new Secret('a key of thirty-two characters..');
    const plain = { kind: 'SealiftLockSecrets', format: 1, drawn } as const;
    const text = formatLockSecrets({ ...plain, key: sealKey.toString('base64') });
    await writeFile(at('sealift.lock.secrets'), text);
    await writeLock(requestOf({ key }), found, tools);
    expect(await readFile(at('sealift.lock.json'), 'utf8')).toContain('"secrets"');
    await expect(access(at('sealift.lock.secrets'))).rejects.toThrow('ENOENT');
  });
});
