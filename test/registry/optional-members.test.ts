import { describe, expect, it } from 'vitest';
import { digestOf } from '../../src/base/digest.ts';
import { IntegrityError } from '../../src/base/errors.ts';
import { MEDIA_TYPE, parseAnnotations, parseManifest } from '../../src/registry/manifest.ts';
import { parseImageConfig } from '../../src/registry/image-config.ts';

/*
 * The members of the documents of image-spec 1.1 (manifest.md, image-index.md, descriptor.md, config.md), each
 * with the word that the specification has for it.
 */

const DESCRIPTOR = {
  mediaType: MEDIA_TYPE.ociLayer,
  digest: digestOf('layer'),
  size: 5,
  urls: ['https://layers.example/1'],
  annotations: { a: 'b' },
  data: Buffer.from('layer').toString('base64'),
  artifactType: 'application/vnd.example',
};
const PLATFORM = {
  'architecture': 'arm64',
  'os': 'linux',
  'os.version': '1',
  'os.features': ['x'],
  'variant': 'v8',
};
const COMMON = {
  schemaVersion: 2,
  artifactType: 'application/vnd.example',
  subject: DESCRIPTOR,
  annotations: { a: 'b' },
};
const MANIFEST = {
  ...COMMON,
  mediaType: MEDIA_TYPE.ociManifest,
  config: DESCRIPTOR,
  layers: [DESCRIPTOR],
};
const INDEX = {
  ...COMMON,
  mediaType: MEDIA_TYPE.ociIndex,
  manifests: [{ ...DESCRIPTOR, platform: PLATFORM }],
};
const CONFIG = {
  created: '2026-01-01T00:00:00Z',
  author: 'nobody',
  architecture: 'amd64',
  os: 'linux',
  variant: 'v1',
  config: {
    User: 'u',
    ExposedPorts: { '80/tcp': {} },
    Env: ['A=b'],
    Entrypoint: ['/e'],
    Cmd: ['c'],
    Volumes: { '/v': {} },
    WorkingDir: '/',
    Labels: { a: 'b' },
    StopSignal: 'SIGTERM',
  },
  rootfs: { type: 'layers', diff_ids: [digestOf('layer')] },
  history: [
    {
      created: '2026-01-01T00:00:00Z',
      author: 'a',
      created_by: 'b',
      comment: 'c',
      empty_layer: false,
    },
  ],
};

type Member = readonly [path: string, word: 'REQUIRED' | 'OPTIONAL'];

const ofDescriptor = (at: string): readonly Member[] => [
  [`${at}.mediaType`, 'REQUIRED'],
  [`${at}.digest`, 'REQUIRED'],
  [`${at}.size`, 'REQUIRED'],
  [`${at}.urls`, 'OPTIONAL'],
  [`${at}.annotations`, 'OPTIONAL'],
  [`${at}.data`, 'OPTIONAL'],
  [`${at}.artifactType`, 'OPTIONAL'],
];
const ofBoth: readonly Member[] = [
  ['mediaType', 'OPTIONAL'], // "SHOULD be used"
  ['artifactType', 'OPTIONAL'],
  ['subject', 'OPTIONAL'],
  ['annotations', 'OPTIONAL'],
];
const MEMBERS_OF_MANIFEST: readonly Member[] = [
  ...ofBoth,
  ['config', 'REQUIRED'],
  ...ofDescriptor('config'),
  ['layers', 'REQUIRED'],
  ...ofDescriptor('layers.0'),
];
const MEMBERS_OF_INDEX: readonly Member[] = [
  ...ofBoth,
  ['manifests', 'REQUIRED'],
  ...ofDescriptor('manifests.0'),
  ['manifests.0.platform', 'OPTIONAL'],
  ['manifests.0.platform.architecture', 'REQUIRED'],
  ['manifests.0.platform.os', 'REQUIRED'],
  ['manifests.0.platform.os~version', 'OPTIONAL'],
  ['manifests.0.platform.os~features', 'OPTIONAL'],
  ['manifests.0.platform.variant', 'OPTIONAL'],
];
/** The config of an artifact has none of them, and a reader of labels needs none. */
const MEMBERS_OF_CONFIG: readonly Member[] = [
  ...['created', 'author', 'architecture', 'os', 'variant', 'config', 'rootfs', 'history'],
  ...Object.keys(CONFIG.config).map((name) => `config.${name}`),
  ...['created', 'author', 'created_by', 'comment', 'empty_layer'].map(
    (name) => `history.0.${name}`,
  ),
].map((path) => [path, 'OPTIONAL']);

/** The document with another value of a member; undefined leaves it out. */
function change(document: object, path: string, value?: unknown): Buffer {
  const copy = structuredClone(document) as Record<string, unknown>;
  const steps = path.split('.').map((step) => step.replace('~', '.'));
  const last = steps.pop() ?? '';
  let holder = copy;
  for (const step of steps) holder = holder[step] as Record<string, unknown>;
  if (!(last in holder)) throw new Error(`no ${path}`);
  if (value === undefined) Reflect.deleteProperty(holder, last);
  else holder[last] = value;
  return Buffer.from(JSON.stringify(copy));
}

const readManifest = (bytes: Uint8Array): unknown => [
  parseManifest(bytes, 'application/json'),
  parseAnnotations(bytes),
];
const readConfig = (bytes: Uint8Array): unknown =>
  parseImageConfig(bytes, (problem) => new IntegrityError('image.malformed', problem));

describe.each([
  ['an image manifest', MANIFEST, MEMBERS_OF_MANIFEST, readManifest],
  ['an image index', INDEX, MEMBERS_OF_INDEX, readManifest],
  ['an image config', CONFIG, MEMBERS_OF_CONFIG, readConfig],
] as const)('%s', (...[, document, members, read]) => {
  it.each(members.filter(([, word]) => word === 'OPTIONAL'))('may have no %s', (path) => {
    expect(() => read(change(document, path))).not.toThrow();
    expect(() => read(change(document, path, null))).not.toThrow(); // as Go's tools write it
  });

  it.each(members.filter(([, word]) => word === 'REQUIRED'))('must have %s', (path) => {
    const name = path.split('.').at(-1) ?? '';
    expect(() => read(change(document, path))).toThrow(name);
    expect(() => read(change(document, path))).toThrow('absent');
  });
});

describe('a manifest', () => {
  it.each([MANIFEST, INDEX])('with an empty text as its type has none', (document) => {
    const bytes = change(document, 'mediaType', '');
    expect(parseManifest(bytes, document.mediaType)).toMatchObject({
      mediaType: document.mediaType,
    });
    expect(parseManifest(bytes)).toMatchObject({ mediaType: document.mediaType });
  });

  it.each([`sha512:${'a'.repeat(128)}`, `blake3:${'a'.repeat(64)}`])(
    'that names a blob by a legal digest which is not read is unsupported: %s',
    (digest) => {
      const code = 'manifest.unsupported';
      const algorithm = digest.slice(0, 6);
      for (const read of [
        () => parseManifest(change(MANIFEST, 'layers.0.digest', digest)),
        () => parseManifest(change(INDEX, 'manifests.0.digest', digest)),
      ]) {
        expect(read).toThrow(expect.objectContaining({ code }) as Error);
        expect(read).toThrow(`is a digest of ${algorithm}, which is not supported`);
      }
    },
  );
});
