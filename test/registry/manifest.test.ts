import { describe, expect, it } from 'vitest';
import { digestOf } from '../../src/base/digest.ts';
import {
  descriptorsOf,
  isForPlatform,
  MEDIA_TYPE,
  mediaTypeOf,
  parseManifest,
} from '../../src/registry/manifest.ts';

const encode = (document: unknown): Buffer => Buffer.from(JSON.stringify(document));
const descriptor = (text: string) => ({
  mediaType: MEDIA_TYPE.ociLayer,
  digest: digestOf(text),
  size: text.length,
});
const image = { schemaVersion: 2, config: descriptor('config'), layers: [descriptor('layer')] };
const index = {
  schemaVersion: 2,
  manifests: [{ ...descriptor('child'), platform: { os: 'linux', architecture: 'amd64' } }],
};

describe('a manifest', () => {
  it('names its config and its layers, in this order', () => {
    expect(descriptorsOf(parseManifest(encode(image)))).toEqual([image.config, ...image.layers]);
    expect(descriptorsOf(parseManifest(encode(index)))).toEqual(index.manifests);
  });

  it('has the type that the document states, else the one of HTTP, else a guess from its members', () => {
    const declared = encode({ ...image, mediaType: MEDIA_TYPE.dockerManifest });
    expect(parseManifest(declared, MEDIA_TYPE.ociManifest).mediaType).toBe(
      MEDIA_TYPE.dockerManifest,
    );
    const byHeader = parseManifest(encode(image), `${MEDIA_TYPE.dockerManifest}; charset=utf-8`);
    expect(byHeader.mediaType).toBe(MEDIA_TYPE.dockerManifest);
    expect(parseManifest(encode(index), 'application/json').mediaType).toBe(MEDIA_TYPE.ociIndex);
    expect(mediaTypeOf('text/plain')).toBeUndefined();
  });

  it.each([
    [{ schemaVersion: 1 }, 'manifest.unsupported'],
    [{ ...image, mediaType: 'application/vnd.example' }, 'manifest.unsupported'],
    [[], 'manifest.malformed'],
    [{ ...image, config: undefined }, 'manifest.malformed'],
    [{ ...image, layers: {} }, 'manifest.malformed'],
    [{ ...image, layers: [{ ...descriptor('x'), digest: 'md5:1' }] }, 'manifest.unsupported'],
    [{ ...image, layers: [{ ...descriptor('x'), digest: 'sha256:1' }] }, 'manifest.malformed'],
    [{ ...image, layers: [{ ...descriptor('x'), size: -1 }] }, 'manifest.malformed'],
    [{ ...image, layers: [{ ...descriptor('x'), size: '1' }] }, 'manifest.malformed'],
    [{ ...image, layers: [{ ...descriptor('x'), size: 2 ** 60 }] }, 'manifest.malformed'],
    [{ ...image, layers: [{ digest: digestOf('x'), size: 1 }] }, 'manifest.malformed'],
  ])('with content %j is refused as %s', (document, code) => {
    try {
      parseManifest(encode(document));
      expect.unreachable();
    } catch (error) {
      expect(error).toMatchObject({ code });
    }
  });

  it('is refused if it is not valid JSON or not UTF-8', () => {
    for (const [text, problem] of [
      ['{', 'manifest is not JSON'],
      ['\xff', 'manifest is not UTF-8'],
    ] as const) {
      expect(() => parseManifest(Buffer.from(text, 'latin1'))).toThrow(problem);
    }
  });
});

describe('an index entry', () => {
  const entry = (architecture: string, variant?: string) => ({
    ...descriptor('x'),
    platform: { os: 'linux', architecture, ...(variant !== undefined && { variant }) },
  });

  it('for arm64 has variant v8 or none', () => {
    const wanted = { os: 'linux', architecture: 'arm64' };
    expect(isForPlatform(entry('arm64'), wanted)).toBe(true);
    expect(isForPlatform(entry('arm64', 'v8'), wanted)).toBe(true);
    expect(isForPlatform(entry('arm64', 'v9'), wanted)).toBe(false);
    expect(isForPlatform(entry('amd64'), wanted)).toBe(false);
    expect(isForPlatform(descriptor('x'), wanted)).toBe(false);
    expect(isForPlatform(entry('arm64', 'v9'), { ...wanted, variant: 'v9' })).toBe(true);
  });
});
