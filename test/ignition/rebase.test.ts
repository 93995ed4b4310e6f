import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { IgnitionConfig } from '../../src/ignition/index.ts';
import { rebaseConfig } from '../../src/ignition/rebase.ts';

const ignition = { version: '3.2.0' };
const file = (path: string, source: string) => ({ path, contents: { source } });
const configOf = (...files: readonly (readonly [string, string])[]): IgnitionConfig => ({
  ignition,
  storage: { files: files.map(([path, source]) => file(path, source)) },
});

describe('changes of a config, made in another one', () => {
  it('are new, changed and removed parts, and the other parts of the base stay', () => {
    const before = configOf(['/a', '1'], ['/b', '1'], ['/c', '1']);
    const now = {
      ...configOf(['/new', '1'], ['/a', '2'], ['/c', '1']),
      passwd: { users: [{ name: 'core' }] },
    };
    const base = configOf(['/a', '1'], ['/b', '1'], ['/c', '2'], ['/d', '1']);
    const { config, changed, conflicts } = rebaseConfig({ before, now, base });
    expect(config).toEqual({
      ...configOf(['/new', '1'], ['/a', '2'], ['/c', '2'], ['/d', '1']),
      passwd: { users: [{ name: 'core' }] },
    });
    expect([...changed].sort()).toEqual([
      'passwd.users core',
      'storage.files /a',
      'storage.files /b',
      'storage.files /new',
    ]);
    expect(conflicts).toEqual([]);
  });

  it('conflict if both sides changed a part, unless both made it the same', () => {
    const sides = {
      before: configOf(['/a', '1'], ['/b', '1'], ['/c', '1']),
      now: configOf(['/a', '2'], ['/b', '2']),
      base: configOf(['/a', '3'], ['/b', '2'], ['/c', '3']),
    };
    const { config, conflicts } = rebaseConfig(sides);
    expect(conflicts).toEqual(['storage.files /a', 'storage.files /c']);
    expect(config).toEqual(sides.base);
  });

  it('never name the source of a config, which can be a whole config or have a password', () => {
    const merge = (...sources: readonly string[]): IgnitionConfig => ({
      ignition: { ...ignition, config: { merge: sources.map((source) => ({ source })) } },
    });
    const sides = {
      before: merge('https://a.example/1'),
      now: merge('https://user:word@b.example/2', 'data:,secret'),
      base: merge('https://a.example/1'),
    };
    const { config, changed, conflicts } = rebaseConfig(sides);
    expect([changed, conflicts]).toEqual([['ignition.config.merge'], []]);
    expect(config).toEqual(sides.now);
  });

  it('name the entry of a list, regardless of how deep the change is', () => {
    const unit = (contents: string) => ({
      ignition,
      systemd: { units: [{ name: 'a.service', dropins: [{ name: '10.conf', contents }] }] },
    });
    const sides = { before: unit('1'), now: unit('2'), base: unit('3') };
    expect(rebaseConfig(sides).conflicts).toEqual(['systemd.units a.service']);
  });

  it('give the changed config if the base is the config before, and the base if nothing changed', () => {
    const paths = fc.uniqueArray(fc.constantFrom('/a', '/b', '/c', '/d'));
    const any = fc
      .tuple(paths, fc.array(fc.constantFrom('1', '2'), { minLength: 4, maxLength: 4 }))
      .map(([names, texts]) =>
        configOf(...names.map((name, at) => [name, texts[at] ?? ''] as const)),
      );
    fc.assert(
      fc.property(any, any, (one, other) => {
        expect(rebaseConfig({ before: one, now: other, base: one }).config).toEqual(other);
        const unchanged = rebaseConfig({ before: one, now: one, base: other });
        expect(unchanged).toEqual({ config: other, changed: [], conflicts: [] });
      }),
    );
  });
});
