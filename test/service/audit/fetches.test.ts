import { expect, it } from 'vitest';
import type { AuditEntry } from '../../../src/service/audit/chain.ts';
import { createFetches, type FetchedFile } from '../../../src/service/audit/fetches.ts';

const IMAGE: FetchedFile = {
  file: 'image',
  id: 'a',
  revision: 1,
  tenant: 't',
  version: '4.21.3',
  base: 'sha256:1',
  size: 100,
  etag: '"e"',
};
const CLIENT = { method: 'GET', address: '192.0.2.1' };

function open() {
  const entries: AuditEntry[] = [];
  let clock = 0;
  const fetches = createFetches({ now: () => clock, add: (entry) => entries.push(entry) });
  const range = (start: number, sent: number, client = CLIENT): void => {
    fetches.begin(IMAGE, client)({ status: 206, start, sent, complete: true });
  };
  const pass = (milliseconds: number): void => {
    clock += milliseconds;
    fetches.sweep();
  };
  return { entries, fetches, range, pass };
}

it('a download in many ranges has a line at its begin, and one when all bytes were delivered', () => {
  const { entries, range, pass } = open();
  for (let at = 0; at < 100; at += 10) range(at, 10);
  expect(entries).toEqual([
    {
      event: 'image.fetch.begin',
      what: {
        file: 'image',
        id: 'a',
        revision: 1,
        version: '4.21.3',
        base: 'sha256:1',
        size: 100,
        etag: '"e"',
      },
      who: { tenant: 't', address: '192.0.2.1', host: undefined },
    },
    expect.objectContaining({
      event: 'image.fetch.end',
      bytes: 100,
      answers: 10,
      complete: true,
    }),
  ]);
  pass(1_000_000);
  expect(entries).toHaveLength(2);
});

it('a download that pauses longer than a controller does has ended, and is not complete', () => {
  const { entries, range, pass } = open();
  range(0, 10);
  range(0, 10);
  pass(59_000);
  range(50, 10);
  pass(59_000);
  expect(entries).toHaveLength(1);
  pass(1000);
  expect(entries[1]).toMatchObject({ bytes: 30, answers: 3, complete: false });
  range(0, 10);
  expect(entries).toHaveLength(3);
});

it('clients are told apart, and HEAD fetches nothing', () => {
  const { entries, range, fetches } = open();
  range(0, 10);
  range(0, 10, { method: 'GET', address: '192.0.2.2' });
  range(0, 0, { method: 'HEAD', address: '192.0.2.3' });
  expect(entries).toHaveLength(2);
  fetches.end();
  expect(entries).toHaveLength(4);
});

it('memory is bounded: the oldest of thousands of downloads has ended', () => {
  const { entries, fetches } = open();
  for (let at = 0; at < 2100; at += 1)
    fetches.begin({ ...IMAGE, tenant: String(at), id: String(at) }, CLIENT)();
  expect(entries.filter(({ event }) => event === 'image.fetch.end')).toHaveLength(100);
});

it('thousands of addresses that read the files of a tenant have a bounded number of lines', () => {
  const { entries, fetches, range, pass } = open();
  const addresses = Array.from({ length: 5000 }, (_, at) => ({
    method: 'GET',
    address: String(at),
  }));
  for (const client of addresses) range(0, 100, client);
  expect(entries).toHaveLength(2 * 1000 + 1);
  expect(entries.at(-1)).toMatchObject({ who: { tenant: 't', address: 'others' } });
  fetches.begin({ ...IMAGE, tenant: 'other', id: 'b' }, CLIENT)();
  expect(entries.at(-1)).toMatchObject({ who: { tenant: 'other', address: CLIENT.address } });
  pass(60_000);
  expect(entries.find(({ answers }) => answers === 4000)).toMatchObject({
    event: 'image.fetch.end',
    complete: false,
  });
});
