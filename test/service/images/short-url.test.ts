import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import { digestOf } from '../../../src/base/digest.ts';
import {
  createShortId,
  createShortUrls,
  formatImageName,
  IMAGE_NAME,
  LONGEST_URL,
} from '../../../src/service/images/short-url.ts';

const urls = createShortUrls(new Uint8Array(32).fill(7));
const base = digestOf('an ISO');
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

const read = (path: string) => {
  const [, , token = '', revision = ''] = path.split('/');
  return urls.read(token, revision);
};

describe('a short URL', () => {
  it('names the InfraEnv, the revision, the host and the end, and proves them with the ISO', () => {
    const subject = fc.record({
      id: fc.constantFrom(createShortId(), randomUUID()),
      revision: fc.integer({ min: 1, max: 2 ** 40 }),
      host: fc.option(fc.integer({ min: 1, max: 999_999 }), { nil: undefined }),
      seconds: fc.option(fc.integer({ min: 1_600_000_000, max: 5_000_000_000 }), {
        nil: undefined,
      }),
    });
    fc.assert(
      fc.property(subject, ({ id, revision, host, seconds }) => {
        const hosts = host === undefined ? {} : { host };
        const expires = seconds === undefined ? undefined : new Date(seconds * 1000);
        const path = urls.format({ id, revision, base, ...hosts }, expires);
        expect(path).toMatch(/^\/i\/(?:[\w-]{32}|[\w-]{42})\/[\d.]+$/);
        const url = read(path);
        expect([url?.id, url?.revision, url?.host]).toEqual([id, revision, host]);
        expect(url?.expires).toEqual(expires);
        expect(url?.isFor(base)).toBe(true);
        expect(url?.isFor(digestOf('another'))).toBe(false);
        expect(url?.isFor(undefined)).toBe(false);
      }),
    );
  });

  it('is for nothing else if any of it is changed', () => {
    const path = urls.format({ id: createShortId(), revision: 12, base }, new Date());
    for (let at = 3; at < path.length; at += 1) {
      for (const character of 'A0-_.1') {
        if (path[at] === character) continue;
        const changed = read(path.slice(0, at) + character + path.slice(at + 1));
        expect(changed?.isFor(base) ?? false, `${character} at ${at}`).toBe(false);
      }
    }
    const other = createShortUrls(new Uint8Array(32).fill(8));
    const [, , token = '', revision = ''] = path.split('/');
    expect(other.read(token, revision)?.isFor(base)).toBe(false);
    for (const odd of ['', '0', '01', '-1', '1.0', '1.', '1.1.1', '1e3', '9'.repeat(16)]) {
      expect(urls.read(token, odd)).toBeUndefined();
    }
  });

  it('has an id that is a UUID of version 8', () => {
    expect(createShortId()).toMatch(UUID);
    expect(createShortId()).not.toBe(createShortId());
  });

  it('is shorter than 100 characters with a host of 30 and a port, and says cluster and version', () => {
    const origin = `https://${'h'.repeat(30)}:8090`;
    const id = createShortId();
    const start = `${origin}${urls.format({ id, revision: 9, base }, new Date())}/`;
    const image = {
      cluster: 'a-cluster-with-a-long-name',
      version: '4.21.13',
      architecture: 'x86_64',
    };
    const name = formatImageName(image, LONGEST_URL - start.length);
    expect(name).toBe('a-clus-4.21.13.iso');
    expect((start + name).length).toBe(99);
    expect(start + name).toMatch(/^https:\/\/[\w.:-]+(?:\/[\w.-]+)+\.iso$/);
  });

  it.each([
    [
      { cluster: 'edge', version: '4.21.3', architecture: 'x86_64' },
      undefined,
      'edge-4.21.3-x86_64.iso',
    ],
    [{ cluster: 'edge', version: '4.21.3', architecture: 'x86_64' }, 15, 'edge-4.21.3.iso'],
    [{ cluster: 'edge', version: '4.21.3', architecture: 'x86_64' }, 13, 'ed-4.21.3.iso'],
    [{ cluster: 'e-dge', version: '4.21.3', architecture: 'x86_64' }, 13, 'e-4.21.3.iso'],
    [{ cluster: 'edge', version: '4.21.3', architecture: 'x86_64' }, 11, '4.21.3.iso'],
    [{ cluster: 'edge', version: '4.21.3', architecture: 'x86_64' }, 4, 'image.iso'],
    [
      { cluster: 'Zürich / 7 %', version: '4', architecture: 'aarch64' },
      undefined,
      'Z-rich-7-4-aarch64.iso',
    ],
    [{ cluster: '../..', version: '4', architecture: 's390x' }, undefined, '4-s390x.iso'],
  ])(
    'ends in a name of cluster, version and architecture as far as there is room: %j %j',
    (image, room, name) => {
      expect(formatImageName(image, room)).toBe(name);
      expect(name).toMatch(IMAGE_NAME);
    },
  );
});
