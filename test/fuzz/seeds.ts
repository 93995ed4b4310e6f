import { execFileSync } from 'node:child_process';
import { gzipSync } from 'node:zlib';
import { stateRelease } from '../../demo/openpgp-signer.ts';
import { digestOf } from '../../src/base/digest.ts';
import { formatIgnition, textFile, type IgnitionConfig } from '../../src/ignition/index.ts';
import { encodeCpio } from '../../src/ignition/cpio.ts';
import { encodeInitrd } from '../../src/ignition/initrd.ts';
import { encodeSmallIso } from '../../src/iso/lay-out/lay-out.ts';
import { MANIFEST_PATH } from '../../src/sites/compose/tree.ts';
import { formatMediaIndex } from '../../src/media/media-index.ts';
import { planDistributionTree } from '../../src/registry/layout/distribution.ts';
import { encodeContinuation, encodeSystemUse } from '../../src/iso/directory/system-use.ts';
import { encodeRockRidge } from '../../src/iso/directory/rock-ridge.ts';
import { buildImage, packTar } from '../support/images.ts';
import {
  CONTINUATION,
  directoryRecord,
  makeImage,
  named,
  POSIX,
  record,
  SUBDIRECTORY,
} from '../support/raw-image.ts';
import { membersOf, packTar as packSites, packZip, siteFiles } from '../support/site-archives.ts';
import { createThrowAwaySigner } from '../support/throw-away-signer.ts';
import { makeTinyIso } from '../support/tiny-iso.ts';
import { packWorkbook, textRow } from '../support/workbooks.ts';

export type ReaderName =
  | 'iso'
  | 'initrd'
  | 'ignition'
  | 'catalog'
  | 'layer'
  | 'manifest'
  | 'table'
  | 'workbook'
  | 'archive'
  | 'auth'
  | 'signature';

/** A valid file. */
export type Seed = {
  readonly bytes: Uint8Array;
  /** What the bytes are packed into after they were changed, so that a checksum does not hide them. */
  readonly finish?: (bytes: Buffer) => Buffer;
};

const json = (value: unknown): Seed => ({ bytes: Buffer.from(JSON.stringify(value, null, 1)) });
const text = (value: string): Seed => ({ bytes: Buffer.from(value) });

const DIGEST = `sha256:${'ab'.repeat(32)}` as const;
const IMAGE = `quay.io/a/b@${DIGEST}`;

const IGNITION: IgnitionConfig = {
  ignition: { version: '3.2.0' },
  passwd: { users: [{ name: 'core', sshAuthorizedKeys: ['ssh-ed25519 AAAA'] }] },
  storage: {
    files: [textFile('/etc/motd', 'hello', 0o644), textFile('/etc/other', 'there', 0o600)],
  },
  systemd: {
    units: [
      {
        name: 'a.service',
        enabled: true,
        contents: '[Unit]\nDescription=a\n',
        dropins: [{ name: '10-a.conf', contents: '[Unit]\n' }],
      },
    ],
  },
};

const CPIO = encodeCpio([
  { name: 'config.ign', mode: 0o644, data: Buffer.from(formatIgnition(IGNITION)) },
  { name: 'etc/hello', mode: 0o644, data: Buffer.alloc(3000, 'hello ') },
]);

/** Three hundred times as large as when it is packed. */
const packBig = (): Uint8Array =>
  encodeCpio([{ name: 'zeros', mode: 0o644, data: Buffer.alloc(24 << 20) }]);

/** With a program where it is there; another seed does without. */
function pack(program: string, args: readonly string[], input: Uint8Array): Seed[] {
  try {
    const bytes = execFileSync(program, args, { input, stdio: ['pipe', 'pipe', 'ignore'] });
    return [{ bytes }];
  } catch {
    return [];
  }
}

const gzip = (bytes: Uint8Array): Buffer => gzipSync(bytes, { level: 1 });

/** pax(1): every header says the sum of its bytes; a wrong sum would be all that a reader sees. */
function sumTar(bytes: Buffer): Buffer {
  for (let at = 0; at + 512 <= bytes.length; at += 512) {
    if (bytes.toString('latin1', at + 257, at + 262) !== 'ustar') continue;
    bytes.fill(' ', at + 148, at + 156);
    const sum = bytes.subarray(at, at + 512).reduce((total, byte) => total + byte, 0);
    bytes.write(`${sum.toString(8).padStart(6, '0')}\0 `, at + 148, 'latin1');
  }
  return bytes;
}

/** RFC 8878 3.1.1 with blocks that are not compressed, so that what is changed is what is unpacked. */
function storeZstd(bytes: Buffer): Buffer {
  const parts: Buffer[] = [Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, 0x58])];
  for (let at = 0; at === 0 || at < bytes.length; at += 1 << 16) {
    const block = bytes.subarray(at, at + (1 << 16));
    const header = Buffer.alloc(3);
    header.writeUIntLE((block.length << 3) | Number(at + (1 << 16) >= bytes.length), 0, 3);
    parts.push(header, block);
  }
  return Buffer.concat(parts);
}

const KARGS = 'coreos.liveiso=cluster-config ignition.platform.id=metal';

const EMPTY = Array.from({ length: 50 }, (_, index) => `/empty${index}`);

/** Of every kind at once: live ISO, medium with index and registry, configuration ISO. */
async function makeMedium(): Promise<Uint8Array> {
  const { manifests, blobs } = buildImage([{ tar: await packTar([['etc/a', 'NAME=a\n']]) }]);
  const files = planDistributionTree([{ repository: 'a/b', tags: ['latest'], manifests }]);
  const registry = files.map(({ path, content }) => ({
    path: `/registry${path}`,
    bytes: content.kind === 'bytes' ? content.bytes : (blobs.get(content.digest) ?? CPIO),
  }));
  const index = formatMediaIndex({
    format: 1,
    product: 'live-iso',
    release: { version: '4.21.3', reference: IMAGE, architecture: 'x86_64' },
    images: [
      {
        name: 'b',
        set: 'release',
        source: IMAGE,
        repository: 'a/b',
        tags: ['latest'],
        manifests: manifests.map(({ descriptor }) => descriptor.digest),
      },
    ],
    extents: [
      { offset: 0, size: 32_768, digest: digestOf(new Uint8Array(32_768)), paths: [] },
      { offset: 65_536, size: 100, digest: digestOf('x'), paths: ['/images/ignition.img'] },
    ],
  });
  const kargs = { default: KARGS, size: 1024, files: [{ path: 'boot/grub.cfg', offset: 0 }] };
  return encodeSmallIso({
    volumeId: 'cluster-config',
    epoch: 0,
    directories: EMPTY,
    files: [
      ...registry,
      { path: '/sealift/index.json', bytes: Buffer.from(index) },
      { path: '/images/ignition.img', bytes: encodeInitrd([]) },
      { path: '/boot/grub.cfg', bytes: Buffer.from(KARGS.padEnd(1024, '#')) },
      { path: '/coreos/kargs.json', bytes: Buffer.from(JSON.stringify(kargs)) },
      { path: MANIFEST_PATH, bytes: Buffer.from('{"api_vip":{"a":[1]},"password":"x"}') },
    ],
  });
}

const rawImage = (): Buffer =>
  makeImage({
    root: [named('file'), directoryRecord(SUBDIRECTORY)],
    subdirectory: [named('other'), record({ systemUse: encodeContinuation(CONTINUATION, 0, 60) })],
    continuation: encodeSystemUse(encodeRockRidge({ ...POSIX, name: 'continued' })),
  });

const bundle = (name: string, replaces?: string) => ({
  schema: 'olm.bundle',
  package: 'p',
  name,
  image: IMAGE,
  replaces,
  properties: [
    { type: 'olm.package', value: { packageName: 'p', version: '1.0.0' } },
    { type: 'olm.gvk', value: { group: 'g', kind: 'K', version: 'v1' } },
    {
      type: 'olm.constraint',
      value: { failureMessage: 'm', all: { constraints: [{ package: { packageName: 'q' } }] } },
    },
  ],
  relatedImages: [{ name: '', image: IMAGE }],
});

const CATALOG: readonly unknown[] = [
  { schema: 'olm.package', name: 'p', defaultChannel: 'stable' },
  {
    schema: 'olm.channel',
    package: 'p',
    name: 'stable',
    entries: [{ name: 'p.v1' }, { name: 'p.v2', replaces: 'p.v1', skips: ['p.v0'] }],
  },
  bundle('p.v1'),
  bundle('p.v2', 'p.v1'),
];

const DESCRIPTOR = { mediaType: 'application/vnd.oci.image.layer.v1.tar', digest: DIGEST, size: 9 };

const MANIFESTS = [
  {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    config: DESCRIPTOR,
    layers: [DESCRIPTOR, DESCRIPTOR],
    annotations: { a: 'b' },
  },
  {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.index.v1+json',
    manifests: [{ ...DESCRIPTOR, platform: { os: 'linux', architecture: 'amd64' } }],
  },
  {
    format: 1,
    product: 'live-iso',
    release: { version: '1', reference: IMAGE, architecture: 'x86_64' },
    images: [],
    extents: [{ offset: 0, size: 1, digest: DIGEST, paths: ['/a'] }],
  },
  {
    format: 1,
    name: 'n',
    version: '1',
    architecture: 'x86_64',
    release: { image: IMAGE, digest: DIGEST },
    images: [],
  },
];

const AUTH = {
  auths: {
    'quay.io': { auth: Buffer.from('user:password').toString('base64'), email: 'a@b' },
    'quay.io/a': { username: 'u', password: 'p' },
    'registry.io': { identitytoken: 't' },
  },
  credHelpers: {},
  credsStore: '',
};

const SITES = siteFiles('alpha', { 'extra-manifests/a.yaml': 'kind: A\n' });

/** What each reader starts from. */
export const SEEDS: Readonly<Record<ReaderName, () => Promise<readonly Seed[]> | readonly Seed[]>> =
  {
    iso: async () => [
      { bytes: await makeMedium() },
      { bytes: rawImage() },
      { bytes: makeTinyIso() },
    ],
    initrd: () => [
      { bytes: CPIO },
      { bytes: CPIO, finish: gzip },
      { bytes: CPIO, finish: storeZstd },
      { bytes: encodeInitrd([]) },
      { bytes: gzip(packBig()) },
      ...pack('zstd', ['-c', '-q'], packBig()),
      ...pack('zstd', ['-c', '-q'], CPIO),
      ...pack('xz', ['-c', '--check=crc32'], CPIO),
    ],
    ignition: () => [text(formatIgnition(IGNITION))],
    catalog: () => [
      text(CATALOG.map((document) => JSON.stringify(document)).join('\n')),
      text(CATALOG.map((document) => `---\n${JSON.stringify(document)}\n`).join('')),
      text('---\nschema: olm.package\nname: p\n---\nschema: olm.channel\nname: c\npackage: p\n'),
    ],
    layer: async () => {
      const tar = await packTar([
        ['etc/os-release', 'NAME=a\n'],
        ['etc/link', { type: 'symlink', linkname: 'os-release' }],
        ['etc/hard', { type: 'link', linkname: 'etc/os-release' }],
        ['etc/.wh.gone', ''],
        [`${'long/'.repeat(40)}name`, Buffer.alloc(3000, 'body ')],
      ]);
      return [
        { bytes: tar, finish: sumTar },
        { bytes: tar, finish: (bytes) => gzip(sumTar(bytes)) },
        { bytes: tar, finish: (bytes) => storeZstd(sumTar(bytes)) },
        { bytes: gzip(tar) },
        ...pack('zstd', ['-c', '-q'], tar),
        ...pack('zstd', ['-c', '-q', '-19', '--no-check'], tar),
      ];
    },
    manifest: () => [...MANIFESTS.map(json), text(JSON.stringify(MANIFESTS[0]))],
    table: () => [
      text('name,address,gateway\nalpha,10.0.0.1,10.0.0.254\n"be""ta",10.0.0.2,"x\ny"\n'),
      text('- name: alpha\n  address: 10.0.0.1\n- {name: beta, address: "10.0.0.2"}\n'),
      text('alpha: &a\n  address: 10.0.0.1\nbeta:\n  <<: *a\n  gateway: |\n    text\n'),
    ],
    workbook: () => {
      const rows = `${textRow(1, 'name', 'address')}<row r="2"><c r="A2" t="s"><v>0</v></c><c r="B2" s="1"><f>A1</f><v>7</v></c></row>`;
      const parts = {
        shared: ['<r><t>al</t></r><t>pha</t>'],
        formats: ['d/m;@', '[h]&quot;x&quot;'],
      };
      return [
        { bytes: packWorkbook({ rows, ...parts, after: '<mergeCell ref="A3:B4"/>' }) },
        {
          bytes: Buffer.from(rows),
          finish: (bytes) => packWorkbook({ rows: bytes.toString('latin1'), ...parts }),
        },
      ];
    },
    archive: async () => {
      const tar = await packSites(membersOf(SITES));
      return [
        { bytes: packZip(membersOf(SITES)) },
        { bytes: packZip(membersOf(SITES), { zip64: true }) },
        { bytes: tar, finish: sumTar },
        { bytes: tar, finish: (bytes) => gzip(sumTar(bytes)) },
        { bytes: CPIO, finish: gzip },
      ];
    },
    auth: () => [json(AUTH)],
    signature: () => {
      const signer = createThrowAwaySigner();
      const statement = stateRelease(DIGEST, 'quay.io/a/b:4.21.3');
      return [{ bytes: signer.sign(statement) }, { bytes: signer.publicKey }, { bytes: statement }];
    },
  };
