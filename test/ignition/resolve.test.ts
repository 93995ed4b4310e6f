import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { type IgnitionConfig, parseIgnition } from '../../src/ignition/index.ts';
import { decodeFileContent, isSameConfig, parseResolved } from '../../src/ignition/index.ts';
import { resolveConfig } from '../../src/ignition/resolve.ts';

type Json = Readonly<Record<string, unknown>>;

const read = (document: unknown): IgnitionConfig => parseIgnition(JSON.stringify(document), 'it');
const config = (ignition: Json, rest: Json = {}): Json => ({
  ignition: { version: '3.3.0', ...ignition },
  ...rest,
});
const units = (...names: readonly string[]): Json => ({
  systemd: { units: names.map((name) => ({ name })) },
});
const base64 = (document: unknown): Json => ({
  source: `data:;base64,${Buffer.from(JSON.stringify(document)).toString('base64')}`,
});
const packed = (document: unknown): Json => ({
  source: `data:;base64,${gzipSync(JSON.stringify(document)).toString('base64')}`,
  compression: 'gzip',
});
const percent = (document: unknown): Json => ({
  source: `data:,${encodeURIComponent(JSON.stringify(document))}`,
});
const namesOf = ({ systemd }: IgnitionConfig): readonly string[] =>
  (systemd?.units ?? []).map(({ name }) => name);

describe('resolveConfig', () => {
  it('merges the configs of data URLs in base64, as gzip and percent-encoded, in their order', () => {
    const parent = config(
      {
        config: {
          merge: [
            base64(config({}, units('b.service'))),
            packed(config({}, units('c.service'))),
            percent(config({}, units('d.service'))),
          ],
        },
      },
      units('a.service'),
    );
    const { config: merged, unresolved } = resolveConfig(read(parent));
    expect(namesOf(merged)).toEqual(['a.service', 'b.service', 'c.service', 'd.service']);
    expect(merged.ignition).toEqual({ version: '3.3.0' });
    expect(unresolved).toEqual([]);
    expect(parseResolved(JSON.stringify(parent), 'it')).toEqual(merged);
  });

  it('lets a later config win over an earlier one and over its parent, joined by path, name and user', () => {
    const child = (text: string, key: string): Json =>
      config(
        {},
        {
          storage: { files: [{ path: '/a', contents: { source: `data:,${text}` } }] },
          passwd: { users: [{ name: 'core', sshAuthorizedKeys: [key] }] },
        },
      );
    const merge = [base64(child('1', 'one')), base64(child('2', 'two'))];
    const { storage, passwd } = resolveConfig(
      read(config({ config: { merge } }, { storage: { files: [{ path: '/a', mode: 384 }] } })),
    ).config;
    expect(storage?.files).toEqual([{ path: '/a', mode: 384, contents: { source: 'data:,2' } }]);
    expect(passwd?.users).toEqual([{ name: 'core', sshAuthorizedKeys: ['one', 'two'] }]);
  });

  it('resolves nested configs before they are merged, and drops all that a config replaces', () => {
    const nested = config({ config: { merge: [packed(config({}, units('c.service')))] } });
    const replacement = config({ config: { merge: [base64(nested)] } }, units('b.service'));
    const parent = config({ config: { replace: base64(replacement) } }, units('a.service'));
    const { config: merged, unresolved } = resolveConfig(read(parent));
    expect(namesOf(merged)).toEqual(['b.service', 'c.service']);
    expect(unresolved).toEqual([]);
  });

  it('keeps configs from elsewhere as they stand, and reports them without their secrets', () => {
    const remote = { source: 'https://user:word@example.com/a.ign?token=secret' };
    const parent = config(
      { config: { merge: [remote, base64(config({}, units('b.service')))] } },
      units('a.service'),
    );
    const { config: merged, unresolved } = resolveConfig(read(parent));
    expect(merged.ignition.config).toEqual({ merge: [remote] });
    expect(namesOf(merged)).toEqual(['a.service', 'b.service']);
    expect(unresolved).toEqual([
      {
        source: 'https://example.com/a.ign?token=[redacted]',
        reason: 'its contents are elsewhere',
      },
    ]);
    const replaced = resolveConfig(
      read(config({ config: { replace: remote } }, units('a.service'))),
    );
    expect(namesOf(replaced.config)).toEqual([]);
    expect(replaced.config.ignition.config).toEqual({ replace: remote });
    expect(replaced.unresolved).toHaveLength(1);
  });

  it('compares the hash of the unpacked contents, and reports what Ignition would refuse', () => {
    const child = config({}, units('b.service'));
    const digest = createHash('sha512').update(JSON.stringify(child)).digest('hex');
    const merge = [
      { ...packed(child), verification: { hash: `sha512-${digest}` } },
      { ...base64(child), verification: { hash: `sha256-${'0'.repeat(64)}` } },
      { ...base64(child), verification: { hash: 'md5-00' } },
      { ...base64(child), compression: 'gzip' },
      base64({ ignition: { version: '2.2.0' } }),
      { source: 'data:,%7B' },
      { source: 'x' },
    ];
    const { config: merged, unresolved } = resolveConfig(read(config({ config: { merge } })));
    expect(namesOf(merged)).toEqual(['b.service']);
    expect(unresolved.map(({ source, reason }) => `${source} ${reason}`)).toEqual([
      'data: it has another hash than is given for it',
      'data: it has another hash than is given for it',
      'data: it cannot be decoded, or is too large',
      'data: it has Ignition version "2.2.0"',
      'data: it is not JSON',
      'an address that is not a URL its contents are elsewhere',
    ]);
  });

  it('bounds depth, number and size of what it reads', () => {
    let deep = config({}, units('deep.service'));
    for (let level = 0; level < 40; level++) deep = config({ config: { merge: [packed(deep)] } });
    expect(resolveConfig(read(deep)).unresolved).toEqual([
      { source: 'data:', reason: 'it is nested deeper than 32 levels' },
    ]);
    const many = Array.from({ length: 103 }, (_, at) =>
      percent(config({}, units(`${at}.service`))),
    );
    const wide = resolveConfig(read(config({ config: { merge: many } })));
    expect(namesOf(wide.config)).toHaveLength(100);
    expect(wide.unresolved).toHaveLength(3);
    const bomb = {
      source: `data:;base64,${gzipSync(Buffer.alloc(65 << 20)).toString('base64')}`,
      compression: 'gzip',
    };
    expect(resolveConfig(read(config({ config: { merge: [bomb] } }))).unresolved).toEqual([
      { source: 'data:', reason: 'it cannot be decoded, or is too large' },
    ]);
  });

  it('is the config itself where it refers to no other', () => {
    const alone = read(config({ timeouts: { httpTotal: 3 } }, units('a.service')));
    expect(resolveConfig(alone)).toEqual({ config: alone, unresolved: [] });
  });
});

describe('isSameConfig', () => {
  it('takes entries in any order, and lists without names in their own', () => {
    const one = read(config({}, units('a.service', 'b.service')));
    expect(isSameConfig(one, read(config({}, units('b.service', 'a.service'))))).toBe(true);
    expect(isSameConfig(one, read(config({}, units('a.service'))))).toBe(false);
    const options = (...mountOptions: readonly string[]): IgnitionConfig =>
      read(config({}, { storage: { filesystems: [{ device: '/dev/a', mountOptions }] } }));
    expect(isSameConfig(options('a', 'b'), options('b', 'a'))).toBe(false);
  });
});

describe('the content of a file', () => {
  it('may have octets that are not part of a character', () => {
    const content = decodeFileContent({ contents: { source: 'data:text/plain,%FFa%00%c3%a9' } });
    expect(content?.toString('hex')).toBe('ff6100c3a9');
  });
});
