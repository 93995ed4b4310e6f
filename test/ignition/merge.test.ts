import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { textFile, type IgnitionConfig } from '../../src/ignition/index.ts';
import { mergeConfigs } from '../../src/ignition/merge.ts';

const config = (rest: Omit<IgnitionConfig, 'ignition'>): IgnitionConfig => ({
  ignition: { version: '3.2.0' },
  ...rest,
});

describe('mergeConfigs', () => {
  it('keeps the order of the parent, merges entries with the same key in place and appends the rest', () => {
    const merged = mergeConfigs(
      config({ storage: { files: [textFile('/a', '1', 0o644), textFile('/b', '1', 0o600)] } }),
      config({ storage: { files: [textFile('/c', '2', 0o644), textFile('/a', '2', 0o755)] } }),
    );
    expect(merged.storage?.files).toEqual([
      textFile('/a', '2', 0o755),
      textFile('/b', '1', 0o600),
      textFile('/c', '2', 0o644),
    ]);
  });

  it('merges the contents of a file member by member', () => {
    const merged = mergeConfigs(
      config({
        storage: { files: [{ path: '/a', mode: 420, contents: { compression: 'gzip' } }] },
      }),
      config({ storage: { files: [{ path: '/a', contents: { source: 'data:,x' } }] } }),
    );
    expect(merged.storage?.files).toEqual([
      { path: '/a', mode: 420, contents: { compression: 'gzip', source: 'data:,x' } },
    ]);
  });

  it('lets a directory or link of the child replace a file of the parent', () => {
    const merged = mergeConfigs(
      config({ storage: { files: [textFile('/a', '', 0o644), textFile('/b', '', 0o644)] } }),
      config({ storage: { directories: [{ path: '/a' }], links: [{ path: '/b', target: '/c' }] } }),
    );
    expect(merged.storage).toEqual({
      files: [],
      directories: [{ path: '/a' }],
      links: [{ path: '/b', target: '/c' }],
    });
  });

  it('appends the appendices and the options, and joins keys and groups by value', () => {
    const append = (text: string): IgnitionConfig =>
      config({
        passwd: { users: [{ name: 'core', sshAuthorizedKeys: ['same', text] }] },
        storage: {
          files: [{ path: '/a', append: [{ source: `data:,${text}` }] }],
          filesystems: [{ device: '/dev/x', mountOptions: ['ro'] }],
        },
      });
    const merged = mergeConfigs(append('1'), append('2'));
    expect(merged.storage?.files?.[0]?.append).toEqual([
      { source: 'data:,1' },
      { source: 'data:,2' },
    ]);
    expect(merged.storage?.filesystems?.[0]?.mountOptions).toEqual(['ro', 'ro']);
    expect(merged.passwd?.users).toEqual([{ name: 'core', sshAuthorizedKeys: ['same', '1', '2'] }]);
  });

  it('identifies partitions by their number, or by their label if the number is 0', () => {
    const disk = (...partitions: { number: number; label: string; sizeMiB?: number }[]) =>
      config({ storage: { disks: [{ device: '/dev/x', partitions }] } });
    const merged = mergeConfigs(
      disk({ number: 1, label: 'a' }, { number: 0, label: 'b' }),
      disk({ number: 0, label: 'b', sizeMiB: 5 }, { number: 1, label: 'c' }),
    );
    expect(merged.storage?.disks?.[0]?.partitions).toEqual([
      { number: 1, label: 'c' },
      { number: 0, label: 'b', sizeMiB: 5 },
    ]);
  });

  it('lets the child decide whether a kernel argument should exist', () => {
    const parent = { kernelArguments: { shouldExist: ['a', 'b'], shouldNotExist: ['c'] } };
    const child = { kernelArguments: { shouldExist: ['c'], shouldNotExist: ['b', 'd'] } };
    expect(mergeConfigs(config(parent), config(child)).kernelArguments).toEqual({
      shouldExist: ['a', 'c'],
      shouldNotExist: ['b', 'd'],
    });
  });

  it('declares the newer of the two versions', () => {
    const merged = mergeConfigs(config({}), { ignition: { version: '3.1.0' } });
    expect(merged).toEqual({ ignition: { version: '3.2.0' } });
  });

  it('changes nothing when a configuration is merged with itself or with an empty one', () => {
    const file = fc.record({
      path: fc.constantFrom('/a', '/b', '/c'),
      mode: fc.nat(0o777),
      contents: fc.record({ source: fc.constantFrom('data:,', 'data:,x') }),
    });
    const files = fc.uniqueArray(file, { selector: ({ path }) => path });
    fc.assert(
      fc.property(files, (entries) => {
        const some = config({ storage: { files: entries } });
        expect(mergeConfigs(some, some)).toEqual(some);
        expect(mergeConfigs(config({}), some)).toEqual(some);
        expect(mergeConfigs(some, config({}))).toEqual(some);
      }),
    );
  });
});
