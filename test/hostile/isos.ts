import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { writeFile } from 'node:fs/promises';
import { encodeCpio } from '../../src/ignition/cpio.ts';
import { FILE_FLAG, type DirectoryRecord } from '../../src/iso/directory/record.ts';
import { encodeRockRidge } from '../../src/iso/directory/rock-ridge.ts';
import { encodeContinuation, encodeSystemUse } from '../../src/iso/directory/system-use.ts';
import { encodeSmallIso } from '../../src/iso/lay-out/lay-out.ts';
import { ascii, named, POSIX, record, ROOT } from '../support/raw-image.ts';
import {
  namedDirectory,
  packDirectory,
  packRecords,
  SECTOR,
  writeSparseImage,
  type Piece,
} from '../support/sparse-image.ts';

/** An ISO that costs far more to read than it has bytes, and what must be said of it. */
export type HostileIso = {
  /** As a sentence about the image. */
  readonly title: string;
  /** What some command says about it. */
  readonly problems: readonly RegExp[];
  readonly write: (path: string) => Promise<unknown>;
};

/** Behind everything that the images have at fixed places. */
const FREE = 24;
const VOLUME = 'cluster-config';
const KARGS = `coreos.liveiso=${VOLUME} ignition.platform.id=metal`;

/** Files that make an image a live ISO of CoreOS, with `archive` in its embed area. */
const liveFiles = (archive: Uint8Array) => [
  { path: '/images/ignition.img', bytes: archive },
  { path: '/boot/grub.cfg', bytes: Buffer.from(`${KARGS}\n`.padEnd(1024, '#')) },
  {
    path: '/coreos/kargs.json',
    bytes: Buffer.from(
      JSON.stringify({ default: KARGS, size: 1024, files: [{ path: 'boot/grub.cfg', offset: 0 }] }),
    ),
  },
];

const liveIso = (archive: Uint8Array): Uint8Array =>
  encodeSmallIso({ volumeId: VOLUME, epoch: 0, directories: [], files: liveFiles(archive) });

/** RFC 8878 3.1.1.2: a block of `size` bytes as they are, or one byte again and again. */
function zstdBlock(
  size: number,
  content: Uint8Array,
  kind: { run: boolean; last: boolean },
): Buffer {
  const header = Buffer.alloc(3);
  header.writeUIntLE((size << 3) | (kind.run ? 2 : 0) | (kind.last ? 1 : 0), 0, 3);
  return Buffer.concat([header, content]);
}

/** A zstd frame of 16 KB that unpacks to an archive with one file of `blocks` times 128 KiB of zeros. */
function zstdArchive(blocks: number): Buffer {
  const size = blocks * 128 * 1024;
  const empty = Buffer.from(
    encodeCpio([{ name: 'config.ign', mode: 0o644, data: Buffer.alloc(0) }]),
  );
  const head = Buffer.from(empty.subarray(0, 124));
  head.write(size.toString(16).toUpperCase().padStart(8, '0'), 54, 'latin1');
  const trailer = empty.subarray(124);
  const zero = new Uint8Array(1);
  return Buffer.concat([
    Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, 0x70]),
    zstdBlock(head.length, head, { run: false, last: false }),
    ...Array.from({ length: blocks }, () =>
      zstdBlock(128 * 1024, zero, { run: true, last: false }),
    ),
    zstdBlock(trailer.length, trailer, { run: false, last: true }),
  ]);
}

const times = <Item>(count: number, item: (index: number) => Item): Item[] =>
  Array.from({ length: count }, (_, index) => item(index));

const repeat = (bytes: Uint8Array, count: number): Buffer =>
  Buffer.concat(times(count, () => bytes));

function gzipArchive(): Buffer {
  const data = Buffer.alloc(100 << 20);
  return gzipSync(encodeCpio([{ name: 'config.ign', mode: 0o644, data }]), { level: 1 });
}

/** Records whose system use areas go on through 32 areas of 32 KiB, each full of empty entries. */
async function writeContinuations(path: string): Promise<void> {
  const areaSectors = 16;
  const count = 4000;
  const size = areaSectors * SECTOR;
  const filler = encodeSystemUse(
    times(size / 4 - 8, () => ({ signature: 'XX', version: 1, data: new Uint8Array(0) })),
  );
  const areas = times(60, (index): Piece => {
    const sector = FREE + index * areaSectors;
    const next = index === 59 ? Buffer.alloc(0) : encodeContinuation(sector + areaSectors, 0, size);
    return [sector, Buffer.concat([next, filler])];
  });
  const records = times(count, (index) =>
    record({
      identifier: ascii(`F${index}.;1`),
      systemUse: Buffer.concat([
        encodeSystemUse(encodeRockRidge({ ...POSIX, name: `f${index}` })),
        encodeContinuation(FREE, 0, size),
      ]),
    }),
  );
  await writeMovedRoot(path, { records, pieces: areas, at: FREE + 60 * areaSectors });
}

/** Far from each other: four chains of areas in turn, each of which a record of 62 bytes has read. */
async function writeScatteredContinuations(path: string): Promise<void> {
  const [chains, length] = [4, 30];
  const at = (index: number): number => FREE + index * 32;
  const areas = times(chains * length, (index): Piece => {
    const isLast = index % length === length - 1;
    const next = isLast ? Buffer.alloc(0) : encodeContinuation(at(index + 1), 0, 28);
    return [at(index), next];
  });
  const records = times(30_000, (index) =>
    record({
      identifier: ascii(`F${index}.;1`),
      systemUse: encodeContinuation(at((index % chains) * length), 0, 28),
    }),
  );
  await writeMovedRoot(path, { records, pieces: areas, at: at(chains * length) });
}

type MovedRoot = {
  readonly records: Iterable<DirectoryRecord>;
  readonly pieces: readonly Piece[];
  /** Sector. */
  readonly at: number;
};

/** An image whose root has these records, in `/d`, because they may not fit at the root's place. */
async function writeMovedRoot(path: string, { records, pieces, at }: MovedRoot): Promise<void> {
  const directory = packDirectory(at, 0, records);
  await writeSparseImage(path, {
    sectors: at + directory.length / SECTOR,
    pieces: [
      [ROOT, packDirectory(ROOT, SECTOR, [namedDirectory('d', at, directory.length)])],
      ...pieces,
      [at, directory],
    ],
  });
}

/** Every sector of a directory begins a directory that goes on to the same end. */
async function writeOverlaps(path: string): Promise<void> {
  const sectors = 3000;
  const directory = Buffer.concat(
    times(sectors, (index) =>
      packRecords([namedDirectory(`d${index}`, FREE + index + 1, (sectors - index - 1) * SECTOR)]),
    ),
  );
  await writeSparseImage(path, {
    sectors: FREE + sectors,
    pieces: [
      [ROOT, packDirectory(ROOT, SECTOR, [namedDirectory('d', FREE, sectors * SECTOR)])],
      [FREE, directory],
    ],
  });
}

async function writeLargeDirectory(path: string): Promise<void> {
  const size = 64 << 20;
  const perSector = Math.floor(SECTOR / 44);
  const sector = packRecords(
    times(perSector, (index) => record({ identifier: ascii(`FILE${index}.;1`.slice(-10)) })),
  );
  const directory = repeat(sector, size / SECTOR);
  await writeSparseImage(path, {
    sectors: FREE + size / SECTOR,
    pieces: [
      [ROOT, packDirectory(ROOT, SECTOR, [namedDirectory('d', FREE, size)])],
      [FREE, directory],
    ],
  });
}

/** A path of directories, one sector each from `at` on; `last` fills the last of them. */
const pathPieces = (
  names: readonly string[],
  at: number,
  last: readonly DirectoryRecord[],
): Piece[] =>
  names.map((_, index) => {
    const sector = at + index;
    const next = names[index + 1];
    const records = next === undefined ? last : [namedDirectory(next, sector + 1)];
    return [sector, packDirectory(sector, SECTOR, records)];
  });

const REGISTRY = ['registry', 'docker', 'registry', 'v2', 'repositories'];

async function writeRegistryInItself(path: string): Promise<void> {
  const own = FREE + REGISTRY.length - 1;
  await writeSparseImage(path, {
    sectors: FREE + 64,
    pieces: [
      [ROOT, packDirectory(ROOT, SECTOR, [namedDirectory('registry', FREE)])],
      ...pathPieces(
        REGISTRY,
        FREE,
        times(4, (index) => namedDirectory(`r${index}`, own)),
      ),
    ],
  });
}

/** Directories that each name the next one four times: 4^40 paths. */
async function writeRegistryOfManyPaths(path: string): Promise<void> {
  const first = FREE + REGISTRY.length;
  const levels = 40;
  const level = (index: number): DirectoryRecord[] =>
    times(4, (name) => namedDirectory(`r${name}`, first + index));
  await writeSparseImage(path, {
    sectors: first + levels + 1,
    pieces: [
      [ROOT, packDirectory(ROOT, SECTOR, [namedDirectory('registry', FREE)])],
      ...pathPieces(REGISTRY, FREE, level(0)),
      ...times(levels, (index): Piece => [
        first + index,
        packDirectory(first + index, SECTOR, index + 1 === levels ? [] : level(index + 1)),
      ]),
    ],
  });
}

/** `/sealift/index.json` of 200 MiB, whose extents are all the same 1 MiB of the image. */
async function writeLargeIndex(path: string): Promise<void> {
  const piece = 1 << 20;
  const count = 200;
  const at = FREE + 64;
  const head = '{"format":1,"product":"live-iso","extents":[],"images":[],"x":[[]';
  const first = head.padEnd(piece - 1, ',[]');
  const middle = ''.padEnd(piece - 1, ',[]');
  const extents = times(count, (index) =>
    named('index.json', {
      extent: at + (index === 0 ? 0 : 512),
      size: piece,
      flags: index + 1 < count ? FILE_FLAG.multiExtent : 0,
    }),
  );
  const directory = packDirectory(FREE, 0, extents);
  await writeSparseImage(path, {
    sectors: at + 1024,
    pieces: [
      [ROOT, packDirectory(ROOT, SECTOR, [namedDirectory('sealift', FREE, directory.length)])],
      [FREE, directory],
      [at, Buffer.from(`${first} `)],
      [at + 512, Buffer.from(`${middle} `)],
    ],
  });
}

/** `/sealift/index.json` that lists 600,000 manifests of one image, each a digest of its own length. */
async function writeIndexOfManifests(path: string): Promise<void> {
  const manifests = times(600_000, (index) => `"sha256:${String(index).padStart(64, '0')}"`);
  const image = '{"name":"a","set":"a","source":"a","repository":"a","tags":[],"manifests":';
  const release = '{"version":"4.22.0","reference":"a","architecture":"x86_64"}';
  const digest = `sha256:${'0'.repeat(64)}`;
  const text = `{"format":1,"digest":"${digest}","product":"live-iso","release":${release},"extents":[],"images":[${image}[${manifests.join()}]}]}`;
  const files = [{ path: '/sealift/index.json', bytes: Buffer.from(text) }];
  await writeFile(path, encodeSmallIso({ volumeId: VOLUME, epoch: 0, directories: [], files }));
}

/** The same records in 20 directories: each is below every bound, all of them together are not. */
async function writeManyDirectories(path: string): Promise<void> {
  const files = times(40_000, (index) =>
    named(`file-${index}`, { identifier: ascii(`F${index}.;1`) }),
  );
  const records = packDirectory(FREE, 0, files);
  const starts = times(20, (index) => FREE + (index * records.length) / SECTOR);
  const directories = starts.map((start, index) =>
    namedDirectory(`d${index}`, start, records.length),
  );
  await writeSparseImage(path, {
    sectors: FREE + (20 * records.length) / SECTOR,
    pieces: [
      [ROOT, packDirectory(ROOT, SECTOR, directories)],
      ...starts.map((start): Piece => [start, records]),
    ],
  });
}

export const HOSTILE_ISOS: readonly HostileIso[] = [
  {
    title: 'twelve zstd archives in the embed area',
    problems: [/archives of the initrd hold more than \d+ bytes/],
    write: (path) => writeFile(path, liveIso(repeat(zstdArchive(4090), 12))),
  },
  {
    title: 'twelve gzip archives in the embed area',
    problems: [/archives of the initrd hold more than \d+ bytes/],
    write: (path) => writeFile(path, liveIso(repeat(gzipArchive(), 12))),
  },
  {
    title: 'long continuation areas',
    problems: [/continuation area at sector 24 ends at its byte 32768, past 2048/],
    write: writeContinuations,
  },
  {
    title: 'many continuation areas',
    problems: [/needs more than 3000 blocks with continuation areas/],
    write: writeScatteredContinuations,
  },
  {
    title: 'overlapping directories',
    problems: [/directory \/d\/d0 overlaps directory \/d/],
    write: writeOverlaps,
  },
  {
    title: 'a directory of 64 MiB',
    problems: [/directory at byte \d+ has 67108864 bytes, more than/],
    write: writeLargeDirectory,
  },
  {
    title: 'a registry directory that contains itself',
    problems: [/repositories\/r0 has the same extent as directory \S+repositories/],
    write: writeRegistryInItself,
  },
  {
    title: 'a registry with 4^40 paths',
    problems: [/directory \S+\/r1 has the same extent as directory \S+\/r0/],
    write: writeRegistryOfManyPaths,
  },
  {
    title: 'an index of 200 MiB',
    problems: [/file "index.json" has 209715200 bytes, more than/],
    write: writeLargeIndex,
  },
  {
    title: 'an index of 600,000 manifests',
    problems: [/does not have the digest it names/],
    write: writeIndexOfManifests,
  },
  {
    title: 'twenty directories of 40,000 records',
    problems: [/reading the image needs more than \d+ characters of paths/],
    write: writeManyDirectories,
  },
];

export const writeHostileIso = async (
  { write, title }: HostileIso,
  directory: string,
): Promise<string> => {
  const path = join(directory, `${title.replaceAll(/\W+/g, '-')}.iso`);
  await write(path);
  return path;
};
