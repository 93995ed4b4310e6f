import { expect, it } from 'vitest';
import { digestOf } from '../../../src/base/digest.ts';
import type { Exchange, Service } from '../../../src/service/context.ts';
import { findByShortUrl } from '../../../src/service/images/find-image.ts';
import { createShortId, createShortUrls } from '../../../src/service/images/short-url.ts';
import type { Release } from '../../../src/service/store/entry.ts';

const urls = createShortUrls(new Uint8Array(32).fill(7));
const id = createShortId();
const nameOf = (content: string) => digestOf(Buffer.from(content));

/** A store where an ISO is open only when it is looked at a second time. */
function ask(base: string, opened: string) {
  const release = {
    ...{ version: '4.21.3', architecture: 'x86_64' },
    base: { digest: nameOf(opened) },
  } as Release;
  const body = { name: 'edge', openshift_version: '4.21.3', cpu_architecture: 'x86_64' };
  const service = {
    shortUrls: urls,
    now: () => 0,
    state: {
      read: (_: string, of: string) =>
        Promise.resolve({ id: of, tenant: 'one', revision: 1, body: { ...body, id: of } }),
    },
    releases: { list: () => Promise.resolve([]), find: () => Promise.resolve(release) },
  } as unknown as Service;
  const [, , token = '', revision = ''] = urls
    .format({ id, revision: 1, base: nameOf(base) })
    .split('/');
  const parameters: Record<string, string> = { token, revision };
  const exchange = { req: { param: (name: string) => parameters[name] } } as unknown as Exchange;
  return { found: findByShortUrl(service, exchange), release };
}

it('serves an ISO by its URL when it was opened after the first look at the store', async () => {
  const { found, release } = ask('new', 'new');
  expect(await found).toMatchObject({ release });
});

it('ends the URL of an ISO when another one took its place after the first look', async () => {
  await expect(ask('old', 'new').found).rejects.toMatchObject({
    status: 410,
    message: expect.stringContaining('was replaced') as string,
  });
});
