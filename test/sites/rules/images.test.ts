import { describe, expect, it } from 'vitest';
import { checkReleaseRegistry, explainRepository } from '../../../src/sites/rules/images.ts';

const FORMAT = 'failed to parse: invalid reference format';
const NO_NAME =
  "the repository provided is invalid: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";

it.each([
  ['registry.lab:5000', undefined],
  ['registry.lab/mirror', undefined],
  ['localhost', undefined],
  ['https://registry.lab', 'must have no scheme'],
  ['registry.lab/a:v1', 'must have no tag and no digest'],
  ['registry.lab/', '"" is not a valid repository name'],
  ['team/app', 'names no registry: write it in full, as in registry.example.com/team/app'],
  ['registry.lab:x', '"registry.lab:x" is not a valid registry host'],
  ['registry.lab:0', '"registry.lab:0" is not a valid registry host'],
])('the registry of the release "%s" is judged where it is typed', (text, why) => {
  const problems = checkReleaseRegistry((path, problem) => ({ path, problem }) as never, text);
  const problem = `Invalid value: ${JSON.stringify(text)}: ${why ?? ''}`;
  expect(problems).toEqual(why === undefined ? [] : [{ path: 'releaseRegistry', problem }]);
});

describe('a repository', () => {
  it.each([
    'quay.io/openshift-release-dev/ocp-release',
    'registry.lab:5000/ocp',
    'localhost/a',
    '[2001:db8::1]:5000/a',
    'Registry.lab/a',
    'quay.io/a__b/c-d.e',
  ])('may be %s', (text) => {
    expect(explainRepository(text)).toBeUndefined();
  });

  it.each(['registry.lab:5000', 'registry.lab', '192.0.2.1:5000', 'quay.io'])(
    'may be the whole registry %s',
    (text) => {
      expect(explainRepository(text)).toBeUndefined();
    },
  );

  it.each([
    ['', FORMAT],
    ['quay.io/', FORMAT],
    ['quay.io/a//b', FORMAT],
    ['https://quay.io/a', FORMAT],
    ['quay.io/a b', FORMAT],
    ['quay.io/A', `${FORMAT}: repository name must be lowercase`],
    ['quay.io/a:latest', 'must be repository--not reference'],
    [`quay.io/a@sha256:${'0'.repeat(64)}`, 'must be repository--not reference'],
    ['library/busybox', NO_NAME],
    ['under_score', NO_NAME],
    [`quay.io/${'a'.repeat(256)}`, FORMAT],
  ])('is not "%s"', (text, expected) => {
    expect(explainRepository(text)).toBe(expected);
  });
});
