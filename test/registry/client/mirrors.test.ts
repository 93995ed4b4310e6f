import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatReference, parseReference } from '../../../src/registry/reference.ts';
import { parseRegistriesConf, resolveCandidates } from '../../../src/registry/client/mirrors.ts';

const digest = `sha256:${'a'.repeat(64)}`;

const resolve = (text: string, reference: string): string[] =>
  resolveCandidates(parseRegistriesConf(text, 'test'), parseReference(reference)).map(
    (candidate) => formatReference(candidate.reference) + (candidate.insecure ? ' insecure' : ''),
  );

describe('registries.conf', () => {
  it('does not change a reference that it does not mention', () => {
    expect(resolve('', 'quay.io/a/b:v1')).toEqual(['quay.io/a/b:v1']);
    const text = '[[registry]]\nlocation = "quay.io/team"';
    expect(resolve(text, 'quay.io/teams/b:v1')).toEqual(['quay.io/teams/b:v1']);
  });

  it('names mirrors in order, then the location', () => {
    const text = `
      unqualified-search-registries = ["registry.access.redhat.com"]
      [[registry]]
      prefix = "quay.io/openshift-release-dev"
      location = "origin.example:5000/dev"
      [[registry.mirror]]
      location = "mirror.example:22625/one"
      insecure = true
      [[registry.mirror]]
      location = "mirror.example/two/"
    `;
    expect(resolve(text, `quay.io/openshift-release-dev/ocp-release@${digest}`)).toEqual([
      `mirror.example:22625/one/ocp-release@${digest} insecure`,
      `mirror.example/two/ocp-release@${digest}`,
      `origin.example:5000/dev/ocp-release@${digest}`,
    ]);
  });

  it('takes the longest prefix, and a name before a wildcard', () => {
    const text = ['*.example.com', 'a.example.com', 'a.example.com/x', '*.com']
      .map((prefix, index) => `[[registry]]\nprefix = "${prefix}"\nlocation = "m${index}.test"`)
      .join('\n');
    expect(resolve(text, 'a.example.com/x/y:v1')).toEqual(['m2.test/y:v1']);
    expect(resolve(text, 'a.example.com/z/y:v1')).toEqual(['m1.test/z/y:v1']);
    expect(resolve(text, 'b.example.com/z/y:v1')).toEqual(['m0.test/z/y:v1']);
    expect(resolve(text, 'b.other.com/z/y:v1')).toEqual(['m3.test/z/y:v1']);
    expect(resolve(text, 'example.com.test/z:v1')).toEqual(['example.com.test/z:v1']);
  });

  it('looks for an image among many entries as fast as among few', () => {
    const entries = Array.from({ length: 10_000 }, (_, index) => {
      const mirror = `[[registry.mirror]]\nlocation = "m.example/x${index}"\n`;
      return `[[registry]]\nlocation = "quay.io/x${index}"\n${mirror}`;
    });
    const conf = parseRegistriesConf(entries.join(''), 'test');
    for (let index = 0; index < 20_000; index++) {
      const image = parseReference(`quay.io/x${index % 10_000}/a@${digest}`);
      expect(resolveCandidates(conf, image).length).toBe(2);
    }
  });

  it('asks a mirror only for the references it is meant for', () => {
    const text = `
      [[registry]]
      location = "quay.io"
      [[registry.mirror]]
      location = "digests.test"
      pull-from-mirror = "digest-only"
      [[registry.mirror]]
      location = "tags.test"
      pull-from-mirror = "tag-only"
    `;
    expect(resolve(text, 'quay.io/a:v1')).toEqual(['tags.test/a:v1', 'quay.io/a:v1']);
    expect(resolve(text, `quay.io/a@${digest}`)[0]).toBe(`digests.test/a@${digest}`);
    const legacy = `
      [[registry]]
      location = "quay.io"
      mirror-by-digest-only = true
      [[registry.mirror]]
      location = "m.test"
    `;
    expect(resolve(legacy, 'quay.io/a:v1')).toEqual(['quay.io/a:v1']);
  });

  it('never asks a blocked location, only its mirrors', () => {
    const text = '[[registry]]\nlocation = "quay.io"\nblocked = true\n';
    expect(resolve(text, 'quay.io/a:v1')).toEqual([]);
    expect(resolve(`${text}[[registry.mirror]]\nlocation = "m.test"`, 'quay.io/a:v1')).toEqual([
      'm.test/a:v1',
    ]);
  });

  it('in version 1 blocks and trusts hosts, and its search list has no effect', () => {
    const text = `
      [registries.search]
      registries = ["docker.io"]
      [registries.insecure]
      registries = ["lab.test:5000"]
      [registries.block]
      registries = ["bad.test"]
    `;
    expect(resolve(text, 'lab.test:5000/a:v1')).toEqual(['lab.test:5000/a:v1 insecure']);
    expect(resolve(text, 'bad.test/a:v1')).toEqual([]);
    expect(resolve(text, 'docker.io/library/a:v1')).toEqual(['docker.io/library/a:v1']);
    expect(() => parseRegistriesConf(text, 'my.conf', { v2Only: true })).toThrow(
      'my.conf: it has version 1 of the format, and drop-ins need version 2',
    );
  });

  it('takes the first of two entries of one prefix', () => {
    const entry = (to: string) => `[[registry]]\nprefix = "a.test"\nlocation = "${to}"\n`;
    expect(resolve(entry('one.test') + entry('two.test'), 'a.test/b:v1')).toEqual([
      'one.test/b:v1',
    ]);
  });

  it('does not ask a mirror that an entry of its own blocks', () => {
    const text = `
      [[registry]]
      location = "quay.io"
      [[registry.mirror]]
      location = "m.test"
      [[registry]]
      location = "m.test"
      blocked = true
    `;
    expect(resolve(text, 'quay.io/a:v1')).toEqual(['quay.io/a:v1']);
  });

  it('replaces exactly the prefix, regardless of the rest', () => {
    const part = fc.stringMatching(/^[a-z][a-z0-9]{0,6}$/);
    const path = fc.array(part, { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(path, path, fc.integer({ min: 0, max: 3 }), (name, target, cut) => {
        const prefix = ['quay.io', ...name.slice(0, Math.min(cut, name.length - 1))];
        const location = ['m.test', ...target].join('/');
        const rest = ['quay.io', ...name].slice(prefix.length).join('/');
        const text = `[[registry]]\nprefix = "${prefix.join('/')}"\nlocation = "${location}"`;
        expect(resolve(text, `quay.io/${name.join('/')}@${digest}`)).toEqual([
          `${location}/${rest}@${digest}`,
        ]);
      }),
    );
  });

  it.each([
    ['[[registry', 'it is not TOML'],
    ['[registries.block]\nregistries = "a.test"', 'registries.block.registries is not a list'],
    ['[registries.block]\nregistries = []\n[[registry]]\nlocation = "a.test"', 'mixes version 1'],
    [
      '[[registry]]\nlocation = "a.test"\npull-from-mirror = "all"',
      'valid only in [[registry.mirror]]',
    ],
    [
      '[[registry]]\nlocation = "a.test"\n[[registry]]\nprefix = "b.test"\nlocation = "a.test"\ninsecure = true',
      'a.test is defined twice, once with "insecure = true" and once without',
    ],
    ['[[registry]]\ninsecure = true', 'neither prefix nor location'],
    ['[[registry]]\nprefix = "a.test"', 'has no location'],
    ['[[registry]]\nprefix = "a.*.test"\nlocation = "b.test"', 'may only have "*."'],
    ['[[registry]]\nprefix = "*.a_b.test"\nlocation = "b.test"', 'may only have "*."'],
    [
      '[[registry]]\nlocation = "https://a.test"',
      'my.conf:2: location "https://a.test" must have no',
    ],
    ['[[registry]]\nlocation = "a.test/Team"', '"Team" is not a valid repository name'],
    [
      '[[registry]]\nlocation = "a.test"\n[[registry.mirror]]\nlocation = "b.test:x"',
      'my.conf:4: location "b.test:x": ',
    ],
    ['[[registry]]\nlocation = "a.test"\nblocked = "yes"', 'neither true nor false'],
    ['[[registry]]\nlocation = 5', 'location is not a string'],
    ['registry = "a"', 'registry is not a list of tables'],
    [
      '[[registry]]\nlocation = "a.test"\n[[registry.mirror]]\nlocation = "b.test"\npull-from-mirror = "never"',
      'pull-from-mirror of b.test',
    ],
    [
      '[[registry]]\nlocation = "a.test"\nmirror-by-digest-only = true\n[[registry.mirror]]\nlocation = "b.test"\npull-from-mirror = "all"',
      'mirror-by-digest-only',
    ],
  ])('is refused with the reason: %j', (text, reason) => {
    expect(() => parseRegistriesConf(text, 'my.conf')).toThrow(/^my\.conf:/);
    expect(() => parseRegistriesConf(text, 'my.conf')).toThrow(reason);
  });
});
