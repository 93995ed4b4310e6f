import { describe, expect, it } from 'vitest';
import { explainRepository } from '../../../src/sites/rules/images.ts';

const FORMAT = 'failed to parse: invalid reference format';
const NO_NAME =
  "the repository provided is invalid: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";

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
