import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ConfigError, InterruptedError } from '../../../../src/base/errors.ts';
import type { SiteInput } from '../../../../src/config/sites/site.ts';
import type { Keys } from '../../../../src/openshift/image-based/identity/keys/rsa-keys.ts';
import { placesOf } from '../../../../src/recipes/config-iso/site/site-places.ts';
import {
  createSiteThreads,
  type SiteThreads,
} from '../../../../src/recipes/config-iso/workers/site-threads.ts';
import {
  createSiteWorker,
  type CheckedSite,
  type SiteWorker,
} from '../../../../src/recipes/config-iso/workers/site-worker.ts';
import { EPOCH, siteTree, startSiteThreads } from '../../../support/config-iso-world.ts';
import { makeKeyRing, type KeyRing } from '../../../support/site-identity.ts';

const COUNT = 40;
const NAMES = Array.from({ length: COUNT }, (_, index) => `site-${index}`);
const OPTIONS = { epoch: Number(EPOCH) };
const WANTED = { inputs: `sha256:${'0'.repeat(64)}` } as const;

function inputOf(name: string, install: readonly string[] = []): SiteInput {
  const files = Object.entries(siteTree(name, { install })).map(([path, text]) => ({
    ...{ path: path.slice(name.length + 1), bytes: Buffer.from(text), shownAs: path },
  }));
  return { name, files };
}

/** More than are checked in the thread of the program. */
const checkAll = (worker: SiteWorker): Promise<readonly CheckedSite[]> =>
  Promise.all(NAMES.map((name) => worker.check(inputOf(name), OPTIONS)));

describe('threads for sites', () => {
  let keys: KeyRing;
  let threads: SiteThreads | undefined;
  beforeAll(async () => {
    keys = await makeKeyRing();
  }, 60_000);
  afterAll(() => keys.close());
  afterEach(() => threads?.close());

  const start = (source: Keys = keys, signal = new AbortController().signal): SiteThreads => {
    threads = startSiteThreads(source, signal);
    return threads;
  };

  it('find of every site what the thread of the program finds', async () => {
    const here = createSiteWorker({ keys });
    expect(await checkAll(start())).toEqual(await checkAll(here));
    const bad = inputOf('bad', ['unknownField: 1']);
    const found = await threads?.check(bad, OPTIONS);
    expect(found).toEqual(await here.check(bad, OPTIONS));
    expect(found?.findings[0]).toMatchObject({
      severity: 'error',
      file: 'bad/install-config.yaml',
    });
  });

  it('compose sites with keys of the one source, each asked for once', async () => {
    const worker = start();
    const sites = await checkAll(worker);
    const before = keys.handedOut();
    const composed = await Promise.all(
      sites.map(({ site }, index) => {
        if (!site) throw new Error('a good site was refused');
        const places = placesOf('/nowhere', NAMES[index] ?? '');
        return worker.compose(site, { places, wanted: WANTED, epoch: OPTIONS.epoch });
      }),
    );
    expect(keys.handedOut() - before).toBe(6 * COUNT);
    expect(new Set(composed.map(({ made }) => made.digest)).size).toBe(COUNT);
    expect(composed.at(-1)?.files.map(({ path }) => path)).toEqual([
      '/nowhere/.sealift/site-39.json',
      '/nowhere/site-39/auth/kubeconfig',
      '/nowhere/site-39/auth/kubeadmin-password',
      '/nowhere/site-39.iso',
    ]);
  });

  it('reject with what is wrong with a site, as an error of its class', async () => {
    const worker = start();
    const [first] = await checkAll(worker);
    if (!first?.site) throw new Error('a good site was refused');
    const retained = { signers: {}, signerKeys: {}, clusterName: 'another' };
    const places = placesOf('/nowhere', 'site-0');
    const order = { places, wanted: WANTED, epoch: OPTIONS.epoch, retained };
    const error = await worker.compose(first.site, order).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ConfigError);
    expect(error).toMatchObject({
      ...{ code: 'retained.mismatch', expected: 'site-0', found: 'another' },
    });
  });

  it('give up waiting for keys when the source does', async () => {
    const interrupted: Keys = {
      next: () => Promise.reject(new InterruptedError('SIGINT')),
      hashPassword: (text, salt) => keys.hashPassword(text, salt),
    };
    const worker = start(interrupted);
    const [first] = await checkAll(worker);
    if (!first?.site) throw new Error('a good site was refused');
    const order = { places: placesOf('/nowhere', 'a'), wanted: WANTED, epoch: OPTIONS.epoch };
    const error = await worker.compose(first.site, order).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(InterruptedError);
    expect(error).toMatchObject({ exitCode: 130 });
  });

  it('leave nobody waiting when one of them breaks', async () => {
    threads = createSiteThreads({
      ...{ jobs: 1, signal: new AbortController().signal, keys },
      program: new URL('data:text/javascript,throw new Error("broken")'),
    });
    await expect(checkAll(threads)).rejects.toThrow('broken');
    threads = undefined;
  });
});
