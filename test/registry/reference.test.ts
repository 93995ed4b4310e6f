import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  explainRegistryName,
  formatReference,
  parseReference,
  type Reference,
} from '../../src/registry/reference.ts';
import { maskUserInfo } from '../../src/shape/report.ts';

const digest = `sha256:${'0123456789abcdef'.repeat(4)}` as const;

describe('a reference', () => {
  it('has a registry, a repository, and a tag or a digest or both', () => {
    expect(parseReference(`quay.io:8443/team/app:v1@${digest}`)).toEqual({
      registry: 'quay.io:8443',
      repository: 'team/app',
      tag: 'v1',
      digest,
    });
    expect(parseReference('localhost/app')).toEqual({ registry: 'localhost', repository: 'app' });
    expect(parseReference('[::1]:5000/app:v1').registry).toBe('[::1]:5000');
  });

  it('of Docker Hub with one name gets library/', () => {
    expect(parseReference('docker.io/busybox:1').repository).toBe('library/busybox');
    expect(parseReference('docker.io/team/app:1').repository).toBe('team/app');
  });

  it.each([
    ['busybox', 'names no registry'],
    ['/app', 'names no registry'],
    ['team/app', 'names no registry: write it in full'],
    ['a..test/app', '"a..test" is not a valid registry host'],
    ['a.test:65536/app', '"a.test:65536" is not a valid registry host'],
    ['-a.test/app', 'is not a valid registry host'],
    ['quay.io/App', '"App" is not a valid repository name'],
    ['quay.io/', '"" is not a valid repository name'],
    ['quay.io/a//b', 'is not a valid repository name'],
    ['quay.io/../b', 'is not a valid repository name'],
    ['quay.io/a:-v', '"-v" is not a valid tag'],
    ['quay.io/a:', '"" is not a valid tag'],
    [`quay.io/a@${digest}@${digest}`, 'is not a valid digest'],
    ['quay.io/a@sha256:AB', 'is not a valid digest'],
    ['quay.io/a@', '"" is not a valid digest'],
    [`quay.io/${'a'.repeat(300)}`, 'is not a valid repository name'],
  ])('%s is refused: %s', (text, reason) => {
    expect(() => parseReference(text)).toThrow(reason);
    try {
      parseReference(text);
    } catch (error) {
      expect(error).toMatchObject({ code: 'reference.malformed', exitCode: 3 });
    }
  });

  const hex = fc.stringMatching(/^[0-9a-f]{64}$/);
  const valid = fc.record(
    {
      registry: fc.constantFrom('quay.io', 'localhost:5000', 'a-b.example', '[::1]:5000'),
      repository: fc.stringMatching(
        /^[a-z0-9]{1,5}([._-][a-z0-9]{1,5}){0,2}(\/[a-z0-9]{1,5}){0,3}$/,
      ),
      tag: fc.stringMatching(/^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,20}$/),
      digest: hex.map((text) => `sha256:${text}` as const),
    },
    { requiredKeys: ['registry', 'repository'] },
  );

  it('is parsed back from its own text', () => {
    fc.assert(
      fc.property(valid, (reference) => {
        expect(parseReference(formatReference(reference as Reference))).toEqual(reference);
      }),
    );
  });
});

it.each([
  'canary-user7:canary-word7@quay.io/a/b:c',
  'canary-user7:canary/word7@quay.io:443/a/b:c',
  'canary-user7:canary@word7@quay.io/a/b:c',
])('a reference with a password is refused, and no error shows the password: %s', (text) => {
  let shown = '';
  try {
    parseReference(text);
  } catch (error) {
    shown = String(error);
  }
  expect(shown).toContain('belong into an auth file');
  expect(shown).not.toMatch(/canary/);
  expect(explainRegistryName(text)).toContain('belong into an auth file');
  expect(maskUserInfo(`source: ${text}`)).not.toMatch(/canary/);
});
