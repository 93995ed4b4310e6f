/** Where an El Torito boot image has its code: the boot info table is in front of it. */
const CODE_AT = 64;
const LOADED_AT = 0x7c00;

/** Instructions of a 16-bit processor that print the text behind them with the BIOS, and stop. */
export function encodeBootProgram(text: string, at = 0): Buffer {
  const code = Buffer.from([
    0x31,
    0xc0, // xor ax, ax
    0x8e,
    0xd8, // mov ds, ax
    0xfc, // cld
    0xbe,
    0,
    0, // mov si, the text
    0xac, // next: lodsb
    0x84,
    0xc0, // test al, al
    0x74,
    0x06, // jz stop
    0xb4,
    0x0e, // mov ah, teletype output
    0xcd,
    0x10, // int video
    0xeb,
    0xf5, // jmp next
    0xf4, // stop: hlt
    0xeb,
    0xfd, // jmp stop
  ]);
  code.writeUInt16LE(LOADED_AT + at + code.length, 6);
  return Buffer.concat([code, Buffer.from(`${text}\r\n\0`, 'latin1')]);
}

/** A stand-in for isolinux.bin, without its boot info table. */
export function encodeBiosImage(text: string): Buffer {
  const image = Buffer.alloc(2048);
  image.set([0xeb, CODE_AT - 2]); // jmp to the code
  encodeBootProgram(text, CODE_AT).copy(image, CODE_AT);
  return image;
}

/** The boot info table of isolinux: where descriptor and image are, its size and its sum. */
export function fillBootInfo(image: Buffer, sector: number): Buffer {
  const filled = Buffer.from(image);
  filled.writeUInt32LE(16, 8);
  filled.writeUInt32LE(sector, 12);
  filled.writeUInt32LE(image.length, 16);
  let sum = 0;
  for (let at = CODE_AT; at < image.length; at += 4) sum = (sum + image.readUInt32LE(at)) >>> 0;
  filled.writeUInt32LE(sum, 20);
  return filled;
}

const BLOCK = 512;
/** A floppy's FAT12: 2880 blocks, one a cluster, two tables of 9 blocks, a root of 224 entries. */
const [BLOCKS, TABLE_BLOCKS, ROOT_ENTRIES] = [2880, 9, 224];

/** A stand-in for efiboot.img: a FAT file system with one file, and no boot loader for UEFI. */
export function encodeEfiImage(text: string): Buffer {
  const image = Buffer.alloc(BLOCKS * BLOCK);
  image.set([0xeb, 0x3c, 0x90]);
  image.write('SEALIFT ', 3, 'latin1');
  image.writeUInt16LE(BLOCK, 11);
  image[13] = 1; // blocks a cluster
  image.writeUInt16LE(1, 14); // blocks before the tables
  image[16] = 2;
  image.writeUInt16LE(ROOT_ENTRIES, 17);
  image.writeUInt16LE(BLOCKS, 19);
  image[21] = 0xf0; // removable
  image.writeUInt16LE(TABLE_BLOCKS, 22);
  image.writeUInt16LE(18, 24); // blocks a track
  image.writeUInt16LE(2, 26); // heads
  image[38] = 0x29;
  image.writeUInt32LE(0x5ea11f70, 39);
  image.write('ESP        FAT12   ', 43, 'latin1');
  image.writeUInt16LE(0xaa55, 510);
  const root = (1 + 2 * TABLE_BLOCKS) * BLOCK;
  const data = root + ROOT_ENTRIES * 32;
  const content = Buffer.from(`${text}\r\n`, 'latin1');
  if (content.length > BLOCK) throw new RangeError('the text needs more than one cluster');
  // Clusters 0 and 1 are taken by the media type, cluster 2 is the first and last of the file.
  for (const table of [0, 1]) {
    image.set([0xf0, 0xff, 0xff, 0xff, 0x0f], (1 + table * TABLE_BLOCKS) * BLOCK);
  }
  image.write('ESP        \u0008', root, 'latin1');
  image.write('README  TXT\u0001', root + 32, 'latin1');
  image.writeUInt16LE(2, root + 32 + 26);
  image.writeUInt32LE(content.length, root + 32 + 28);
  content.copy(image, data);
  return image;
}
