import { createPublicKey } from 'node:crypto';
import { afterEach, expect, it } from 'vitest';
import { createKeySource, type KeySource } from '../../../src/sites/identity/keys.ts';

const open: KeySource[] = [];
function start(jobs: number): KeySource {
  const source = createKeySource({ jobs });
  open.push(source);
  return source;
}
afterEach(() => Promise.all(open.splice(0).map((source) => source.close())));

it('no two callers get the same key, however many ask at the same time', async () => {
  const source = start(2);
  const pairs = await Promise.all(Array.from({ length: 8 }, () => source.next()));
  expect(new Set(pairs.map(({ privateKey }) => privateKey)).size).toBe(8);
  for (const { privateKey, publicKey, signingKey } of pairs) {
    expect(createPublicKey(privateKey).equals(publicKey)).toBe(true);
    expect(createPublicKey(signingKey).equals(publicKey)).toBe(true);
  }
});

it('the main thread stays free while keys are made', async () => {
  const source = start(1);
  let turns = 0;
  const timer = setInterval(() => turns++, 1);
  await Promise.all(Array.from({ length: 3 }, () => source.next()));
  clearInterval(timer);
  expect(turns).toBeGreaterThan(10);
});

it('a password is hashed with the given salt, before waiting keys are made', async () => {
  const source = start(1);
  const keys = Promise.allSettled(Array.from({ length: 40 }, () => source.next()));
  const hash = await source.hashPassword('secret', Buffer.alloc(16));
  expect(hash).toMatch(/^\$2a\$10\$\.{22}[./A-Za-z0-9]{31}$/);
  await source.close();
  expect((await keys).filter(({ status }) => status === 'rejected').length).toBeGreaterThan(30);
});

it('a caller that gives up gets the reason, and the others get their keys', async () => {
  const source = start(1);
  const controller = new AbortController();
  const given = source.next(controller.signal);
  const others = Promise.all([source.next(), source.next()]);
  controller.abort(new Error('enough'));
  await expect(given).rejects.toThrow('enough');
  await expect(source.next(controller.signal)).rejects.toThrow('enough');
  expect(await others).toHaveLength(2);
});

it('one signal for hundreds of keys causes no warning about a leak', async () => {
  const warnings: Error[] = [];
  const keep = (warning: Error): void => void warnings.push(warning);
  process.on('warning', keep);
  const source = start(1);
  const { signal } = new AbortController();
  const asked = Promise.allSettled(Array.from({ length: 200 }, () => source.next(signal)));
  await new Promise(setImmediate);
  await source.close();
  await asked;
  process.off('warning', keep);
  expect(warnings).toEqual([]);
});

it('a closed source gives no more keys', async () => {
  const source = start(1);
  const asked = expect(source.next()).rejects.toThrow('closed');
  await source.close();
  await asked;
  await expect(source.next()).rejects.toThrow('closed');
  await expect(source.hashPassword('x', Buffer.alloc(16))).rejects.toThrow('closed');
});
