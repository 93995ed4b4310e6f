import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SealiftError } from '../../src/base/errors.ts';
import { checkStructure } from '../../src/iso/check/structure.ts';
import {
  encodeDirectoryRecord,
  FILE_FLAG,
  type DirectoryRecord,
} from '../../src/iso/directory/record.ts';
import { openIso, type IsoImage } from '../../src/iso/read/open.ts';
import { encodeRockRidge } from '../../src/iso/directory/rock-ridge.ts';
import { encodeContinuation, encodeSystemUse } from '../../src/iso/directory/system-use.ts';
import {
  encodePrimaryVolumeDescriptor,
  encodeTerminator,
} from '../../src/iso/volume/descriptor.ts';
import { runs } from '../support/properties.ts';
import {
  ascii,
  CONTINUATION,
  directoryRecord,
  makeImage,
  named,
  POSIX,
  record,
  ROOT,
  SECTORS,
  SUBDIRECTORY,
  volume,
  type ImageOptions,
} from '../support/raw-image.ts';

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sealift-hostile-'));
});
afterAll(() => rm(directory, { recursive: true }));

async function openBytes(bytes: Uint8Array): Promise<IsoImage> {
  const path = join(directory, 'hostile.iso');
  await writeFile(path, bytes);
  return openIso(path);
}

/** Opens the image and reads all of it: paths of what is there. */
async function readAll(bytes: Uint8Array): Promise<string[]> {
  const iso = await openBytes(bytes);
  const paths: string[] = [];
  try {
    for await (const { path, node } of iso.walk()) {
      paths.push(path);
      if (node.kind === 'file') await iso.readFile(node);
    }
  } finally {
    await iso.close();
  }
  return paths;
}

async function checkAll(bytes: Uint8Array): Promise<string[]> {
  const iso = await openBytes(bytes);
  const problems: string[] = [];
  try {
    for await (const { problem } of checkStructure(iso)) problems.push(problem);
  } finally {
    await iso.close();
  }
  return problems;
}

const expectRefusal = async (options: ImageOptions, code: string): Promise<void> => {
  await expect(readAll(makeImage(options))).rejects.toMatchObject({ code });
};

describe('a file that is not a valid ISO image', () => {
  it('is refused when it is empty, too short, zeros or text', async () => {
    for (const bytes of [Buffer.alloc(0), Buffer.alloc(100_000), Buffer.alloc(100_000, 'text')]) {
      await expect(openBytes(bytes)).rejects.toMatchObject({ code: 'iso.not-iso9660' });
    }
  });

  it('is refused when its set of descriptors does not end', async () => {
    const endless = Buffer.concat([
      Buffer.alloc(16 * 2048),
      ...Array.from({ length: 70 }, () => encodePrimaryVolumeDescriptor(volume())),
    ]);
    await expect(openBytes(endless)).rejects.toMatchObject({
      cause: { message: 'no terminator among the first 64 volume descriptors' },
    });
  });

  it('is refused when it has no primary volume descriptor', async () => {
    const bytes = makeImage({ patches: [[16 * 2048, encodeTerminator()]] });
    await expect(openBytes(bytes)).rejects.toMatchObject({ code: 'iso.not-iso9660' });
  });

  it('is refused with the number of the malformed descriptor', async () => {
    const bytes = makeImage({ patches: [[17 * 2048 + 1, ascii('XXXXX')]] });
    await expect(openBytes(bytes)).rejects.toMatchObject({
      message: expect.stringMatching(/^reading ISO image/) as string,
      cause: {
        message: 'reading volume descriptor 2',
        cause: { message: 'standard identifier is "XXXXX", not "CD001"' },
      },
    });
  });
});

describe('an image that is incomplete', () => {
  it('is refused with both sizes', async () => {
    const bytes = makeImage().subarray(0, (SECTORS - 1) * 2048);
    await expect(openBytes(bytes)).rejects.toMatchObject({
      code: 'iso.truncated',
      cause: { expected: String(SECTORS * 2048), found: String((SECTORS - 1) * 2048) },
    });
  });

  it('is refused regardless of where it ends', async () => {
    const whole = makeImage({ root: [named('file')] });
    for (let sectors = 0; sectors < SECTORS; sectors += 1) {
      await expect(openBytes(whole.subarray(0, sectors * 2048 + 7))).rejects.toThrow(SealiftError);
    }
    expect(await readAll(whole)).toEqual(['/file']);
  });
});

describe('a directory that is wrong', () => {
  it('about its place is refused when it is read', async () => {
    await expectRefusal({ root: [directoryRecord(1_000_000)] }, 'iso.out-of-bounds');
  });

  it('about its size is refused before memory is taken for it', async () => {
    const root = [directoryRecord(SUBDIRECTORY, { size: 0xffffffff })];
    await expectRefusal({ root }, 'iso.directory-too-large');
  });

  it('because it contains itself is refused', async () => {
    await expectRefusal({ root: [directoryRecord(ROOT)] }, 'iso.looping-directory');
    const subdirectory = [directoryRecord(ROOT)];
    const root = [directoryRecord(SUBDIRECTORY)];
    await expectRefusal({ root, subdirectory }, 'iso.looping-directory');
  });

  it('because it is relocated to itself is refused', async () => {
    const systemUse = encodeSystemUse(encodeRockRidge({ ...POSIX, name: 'up', childLink: ROOT }));
    await expectRefusal({ root: [record({ systemUse })] }, 'iso.looping-directory');
    const nowhere = encodeSystemUse(encodeRockRidge({ ...POSIX, name: 'up', childLink: 23 }));
    await expectRefusal({ root: [record({ systemUse: nowhere })] }, 'iso.malformed-record');
  });

  it('because it has no records at all is read as empty', async () => {
    const patches = [[SUBDIRECTORY * 2048, new Uint8Array(2048)]] as const;
    const root = [directoryRecord(SUBDIRECTORY)];
    expect(await readAll(makeImage({ root, patches }))).toEqual(['/DIR']);
    expect(await checkAll(makeImage({ root, patches }))).toContain(
      'directory has 0 records, not at least 2',
    );
  });
});

describe('a directory record that is wrong', () => {
  const at = SUBDIRECTORY * 2048 + 68;
  const root = [directoryRecord(SUBDIRECTORY)];

  it('about its length is refused', async () => {
    for (const length of [1, 2, 32, 33]) {
      const patches = [[at, Uint8Array.of(length)]] as const;
      await expectRefusal({ root, subdirectory: [record({})], patches }, 'iso.malformed-record');
    }
  });

  it('about the length of its identifier is refused', async () => {
    for (const length of [0, 200]) {
      const patches = [[at + 32, Uint8Array.of(length)]] as const;
      await expectRefusal({ root, subdirectory: [record({})], patches }, 'iso.malformed-record');
    }
  });

  it('because it crosses the end of its sector is refused', async () => {
    const long = encodeDirectoryRecord(record({ systemUse: new Uint8Array(200) }));
    const patches = Array.from({ length: 9 }, (_, index) => {
      return [at + index * long.length, long] as const;
    });
    await expectRefusal({ root, patches }, 'iso.malformed-record');
  });

  it('about the place of its file is refused when the file is read', async () => {
    await expectRefusal({ root: [record({ extent: SECTORS })] }, 'iso.out-of-bounds');
    await expectRefusal({ root: [record({ size: 5_000_000 })] }, 'iso.out-of-bounds');
  });

  it('about its size is refused before memory is taken for it', async () => {
    await expectRefusal({ root: [record({ size: 0xffffffff })] }, 'iso.file-too-large');
  });

  it('about further extents is refused', async () => {
    const first = record({ flags: FILE_FLAG.multiExtent });
    await expectRefusal({ root: [first] }, 'iso.malformed-record');
    const other = record({ identifier: ascii('OTHER.;1') });
    await expectRefusal({ root: [first, other] }, 'iso.malformed-record');
  });

  it('because its file is interleaved is refused', async () => {
    await expectRefusal(
      { root: [record({ fileUnitSize: 1, interleaveGap: 1 })] },
      'iso.unsupported',
    );
  });

  it.each(['..', '.', '../../etc/passwd', '/etc/passwd', 'a\0b', ''])(
    'because it has the name %j is refused',
    async (name) => {
      await expectRefusal({ root: [named(name)] }, 'iso.bad-name');
    },
  );
});

describe('a system use area that is wrong', () => {
  const continued = (sector: number, offset: number, size: number): DirectoryRecord =>
    record({ systemUse: encodeContinuation(sector, offset, size) });

  it('because it continues in itself is refused', async () => {
    const continuation = encodeContinuation(CONTINUATION, 0, 28);
    const root = [continued(CONTINUATION, 0, 28)];
    await expectRefusal({ root, continuation }, 'iso.looping-continuation');
    expect((await checkAll(makeImage({ root, continuation }))).join()).toMatch(
      /more than 32 times/,
    );
  });

  it('about the place or size of its continuation is refused', async () => {
    await expectRefusal({ root: [continued(1_000_000, 0, 28)] }, 'iso.out-of-bounds');
    await expectRefusal({ root: [continued(CONTINUATION, 0xffffffff, 28)] }, 'iso.malformed-entry');
    await expectRefusal({ root: [continued(0, 0, 0xffffffff)] }, 'iso.malformed-entry');
  });

  it('about the length of an entry is refused', async () => {
    for (const length of [0, 3]) {
      const systemUse = Uint8Array.of(...ascii('NM'), length, 1, 0, 65);
      await expectRefusal({ root: [record({ systemUse })] }, 'iso.malformed-entry');
    }
    const long = Uint8Array.of(...ascii('NM'), 200, 1, 0, 65);
    await expectRefusal({ root: [record({ systemUse: long })] }, 'iso.truncated');
    const short = Uint8Array.of(...ascii('PX'), 8, 1, 0, 0, 0, 0);
    await expectRefusal({ root: [record({ systemUse: short })] }, 'iso.truncated');
  });

  it('about a component of a symbolic link is refused', async () => {
    const systemUse = Uint8Array.of(...ascii('SL'), 8, 1, 0, 0, 200, 65);
    await expectRefusal({ root: [record({ systemUse })] }, 'iso.truncated');
  });
});

describe('a volume descriptor that is wrong', () => {
  it('about the size of a block is refused', async () => {
    await expectRefusal({ volume: { logicalBlockSize: 512 } }, 'iso.unsupported');
  });

  it('about the place of the root is refused', async () => {
    const rootRecord = { ...volume().rootRecord, extent: 1_000_000 };
    await expectRefusal({ volume: { rootRecord } }, 'iso.out-of-bounds');
    await expectRefusal(
      { volume: { rootRecord: { ...rootRecord, extent: 23 } } },
      'iso.malformed-record',
    );
  });

  it('about its path tables is found by the check, which ends', async () => {
    for (const change of [
      { lPathTable: 1_000_000 },
      { pathTableSize: 0xffffffff },
      { pathTableSize: 7 },
      { pathTableSize: 2048 },
      { optionalMPathTable: 1_000_000 },
    ]) {
      expect((await checkAll(makeImage({ volume: change }))).join()).toMatch(/path table/);
    }
    expect(await checkAll(makeImage())).toEqual([]);
  });
});

describe('any change of bytes', () => {
  const good = makeImage({
    root: [named('file'), directoryRecord(SUBDIRECTORY)],
    subdirectory: [
      named('other'),
      record({ identifier: ascii('Z'), systemUse: encodeContinuation(CONTINUATION, 0, 60) }),
    ],
    continuation: encodeSystemUse(encodeRockRidge({ ...POSIX, name: 'continued' })),
  });

  it('is read or refused with a code, and never causes a bug or an endless read', async () => {
    const used = fc.oneof(
      fc.integer({ min: 16 * 2048, max: 16 * 2048 + 200 }),
      ...[18, 19, ROOT, SUBDIRECTORY, CONTINUATION].map((sector) =>
        fc.integer({ min: sector * 2048, max: sector * 2048 + 400 }),
      ),
    );
    const changes = fc.array(fc.tuple(used, fc.nat(255)), { minLength: 1, maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(changes, async (list) => {
        const bytes = Buffer.from(good);
        for (const [at, value] of list) bytes[at] = value;
        for (const work of [readAll, checkAll]) {
          await work(bytes).catch((error: unknown) => {
            expect(error).toBeInstanceOf(SealiftError);
          });
        }
      }),
      { numRuns: runs(300) },
    );
  });
});
