import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  parseImageReferences,
  parseReleaseMetadata,
} from '../../../src/openshift/release/release.ts';

const DIGEST = `sha256:${'a'.repeat(64)}`;

type Tag = { name?: string; from?: { kind?: string; name?: string } };

const tagOf = (name: string, image = `quay.io/ocp/art@${DIGEST}`): Tag => ({
  name,
  from: { kind: 'DockerImage', name: image },
});

const stream = (tags: unknown, changes: object = {}): string =>
  JSON.stringify({
    kind: 'ImageStream',
    apiVersion: 'image.openshift.io/v1',
    metadata: { name: '4.20.1', creationTimestamp: '2025-10-01T00:00:00Z' },
    spec: { tags },
    ...changes,
  });

describe('image-references', () => {
  it('name the release, its age, and every component by digest', () => {
    expect(parseImageReferences(stream([tagOf('etcd'), tagOf('installer')]))).toEqual({
      version: '4.20.1',
      created: '2025-10-01T00:00:00Z',
      components: ['etcd', 'installer'].map((name) => ({
        name,
        reference: { registry: 'quay.io', repository: 'ocp/art', digest: DIGEST },
      })),
    });
  });

  it.each([
    ['text that is not valid JSON', '{', 'is not JSON'],
    [
      'another kind',
      stream([tagOf('a')], { kind: 'List' }),
      'kind should be "ImageStream", but is the string "List"',
    ],
    [
      'another version',
      stream([tagOf('a')], { apiVersion: 'v1' }),
      'apiVersion should be "image.openshift.io/v1", but is the string "v1"',
    ],
    [
      'no version',
      stream([tagOf('a')], { metadata: {} }),
      'metadata.name should be a string, but is absent',
    ],
    ['no tags', stream([]), 'spec.tags is empty'],
    [
      'a tag without name',
      stream([{ from: {} }]),
      'spec.tags[0].name should be a string, but is absent',
    ],
    [
      'a tag without image',
      stream([{ name: 'a' }]),
      'spec.tags[0].from should be an object, but is absent',
    ],
    [
      'an image by tag',
      stream([tagOf('a', 'quay.io/a/b:1')]),
      '"quay.io/a/b:1" is not a reference by digest',
    ],
    [
      'an invalid image reference',
      stream([tagOf('a', 'NOT AN IMAGE')]),
      'spec.tags[0].from.name names no registry',
    ],
    ['a name no tag can hold', stream([tagOf('../a')]), '"../a" is not a valid tag'],
    [
      'an invalid version',
      stream([tagOf('a')], { metadata: { name: '4.20.1\nrm -r /' } }),
      'metadata.name "4.20.1\\nrm -r /" is not a valid version',
    ],
    ['a name twice', stream([tagOf('a'), tagOf('a')]), 'has component "a" twice'],
  ])('are refused for %s', (_, text, reason) => {
    expect(() => parseImageReferences(text)).toThrow(
      expect.objectContaining({
        code: 'release.malformed',
        message: expect.stringContaining(reason) as string,
      }),
    );
  });
});

describe('release-metadata', () => {
  it('names the version, the versions that may be updated to it, and the errata', () => {
    const text = JSON.stringify({
      kind: 'cincinnati-metadata-v0',
      version: '4.20.1',
      previous: ['4.19.9'],
      metadata: { url: 'https://example.com' },
    });
    expect(parseReleaseMetadata(text)).toEqual({
      version: '4.20.1',
      previous: ['4.19.9'],
      metadata: { url: 'https://example.com' },
    });
  });

  it('may leave out earlier versions and the errata', () => {
    const text = '{"kind":"cincinnati-metadata-v0","version":"4.20.1"}';
    expect(parseReleaseMetadata(text)).toEqual({ version: '4.20.1', previous: [], metadata: {} });
  });

  it('is refused for another kind or without a version', () => {
    expect(() => parseReleaseMetadata('{"kind":"v1"}')).toThrow(
      /kind should be .*, but is the string "v1"/,
    );
    expect(() => parseReleaseMetadata('{"kind":"cincinnati-metadata-v0"}')).toThrow(
      /version should be a string, but is absent/,
    );
  });
});

const REAL = '../shared/data/release';

describe.skipIf(!existsSync(REAL))('a published payload', () => {
  it('is read whole', () => {
    const references = parseImageReferences(
      readFileSync(`${REAL}/4.12.0-x86_64.image-references.json`, 'utf8'),
    );
    const metadata = parseReleaseMetadata(
      readFileSync(`${REAL}/4.12.0.release-metadata.json`, 'utf8'),
    );
    expect(references.version).toBe(metadata.version);
    expect(references.components).toHaveLength(183);
    expect(references.components.map(({ name }) => name)).toContain('machine-os-images');
    expect(metadata.previous).toHaveLength(21);
  });
});
