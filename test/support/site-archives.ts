import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { crc32, deflateRawSync, gzipSync } from 'node:zlib';
import { pack, type Header } from 'tar-stream';

/** Files by path. */
export type Tree = Readonly<Record<string, string>>;

/** The two files that every site has. */
export const siteFiles = (folder: string, extra: Tree = {}): Tree => ({
  [`${folder}/install-config.yaml`]: `metadata: {name: ${folder}}\n`,
  [`${folder}/image-based-config.yaml`]: `hostname: ${folder}\n`,
  ...Object.fromEntries(Object.entries(extra).map(([path, text]) => [`${folder}/${path}`, text])),
});

export function writeTree(root: string, tree: Tree): string {
  for (const [path, text] of Object.entries(tree)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

/** A member of a zip; what is left out is what an honest packer writes. */
export type ZipMember = {
  readonly name: string;
  readonly text?: string;
  readonly mode?: number;
  readonly stored?: boolean;
  readonly flags?: number;
  readonly method?: number;
  readonly crc?: number;
  readonly declaredSize?: number;
  /** Uses the bytes of the member before it, as bombs do. */
  readonly overlaps?: boolean;
};

/** A zip by APPNOTE 4.3.6, byte by byte, so that it can be wrong. */
export function packZip(members: readonly ZipMember[], { zip64 = false } = {}): Buffer {
  const locals: Buffer[] = [];
  const central: Buffer[] = [];
  let offset = 0;
  let last = 0;
  for (const member of members) {
    const content = Buffer.from(member.text ?? '');
    const data = member.stored ? content : deflateRawSync(content);
    const name = Buffer.from(member.name);
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(0x800 | (member.flags ?? 0), 2);
    common.writeUInt16LE(member.method ?? (member.stored ? 0 : 8), 4);
    common.writeUInt32LE(member.crc ?? crc32(content), 10);
    common.writeUInt32LE(data.length, 14);
    common.writeUInt32LE(member.declaredSize ?? content.length, 18);
    common.writeUInt16LE(name.length, 22);
    const local = Buffer.concat([Buffer.from('PK\x03\x04'), common, name, data]);
    if (!member.overlaps) {
      last = offset;
      locals.push(local);
      offset += local.length;
    }
    central.push(centralRecord(member, { common, name, at: last, zip64 }));
  }
  const directory = Buffer.concat(central);
  const ends = zip64 ? endOf64(members.length, directory.length, offset) : Buffer.alloc(0);
  return Buffer.concat([
    ...locals,
    directory,
    ends,
    zip64
      ? endRecord(0xffff, 0xffffffff, 0xffffffff)
      : endRecord(members.length, directory.length, offset),
  ]);
}

type Central = {
  readonly common: Buffer;
  readonly name: Buffer;
  readonly at: number;
  readonly zip64: boolean;
};

function centralRecord(
  { mode = 0o100644 }: ZipMember,
  { common, name, at, zip64 }: Central,
): Buffer {
  const head = Buffer.concat([Buffer.from('PK\x01\x02\x14\x03'), common]);
  const extra = zip64 ? Buffer.alloc(12) : Buffer.alloc(0);
  if (zip64) {
    extra.writeUInt16LE(1, 0);
    extra.writeUInt16LE(8, 2);
    extra.writeBigUInt64LE(BigInt(at), 4);
  }
  head.writeUInt16LE(extra.length, 30);
  const tail = Buffer.alloc(14);
  tail.writeUInt32LE((mode << 16) >>> 0, 6);
  tail.writeUInt32LE(zip64 ? 0xffffffff : at, 10);
  return Buffer.concat([head, tail, name, extra]);
}

function endRecord(count: number, size: number, offset: number): Buffer {
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 'latin1');
  end.writeUInt16LE(count, 8);
  end.writeUInt16LE(count, 10);
  end.writeUInt32LE(size, 12);
  end.writeUInt32LE(offset, 16);
  return end;
}

/** APPNOTE 4.3.14 and 4.3.15. */
function endOf64(count: number, size: number, offset: number): Buffer {
  const end = Buffer.alloc(76);
  end.write('PK\x06\x06', 'latin1');
  end.writeBigUInt64LE(44n, 4);
  end.writeUInt16LE(45, 12);
  end.writeUInt16LE(45, 14);
  end.writeBigUInt64LE(BigInt(count), 24);
  end.writeBigUInt64LE(BigInt(count), 32);
  end.writeBigUInt64LE(BigInt(size), 40);
  end.writeBigUInt64LE(BigInt(offset), 48);
  end.write('PK\x06\x07', 56, 'latin1');
  end.writeBigUInt64LE(BigInt(offset + size), 64);
  end.writeUInt32LE(1, 72);
  return end;
}

export type TarMember = Partial<Header> & { readonly name: string; readonly text?: string };

export async function packTar(members: readonly TarMember[]): Promise<Buffer> {
  const tar = pack();
  const bytes = buffer(tar);
  for (const { text = '', ...header } of members) {
    tar.entry({ mtime: new Date(0), ...header }, text);
  }
  tar.finalize();
  return bytes;
}

export const packTarGz = async (members: readonly TarMember[]): Promise<Buffer> =>
  gzipSync(await packTar(members));

export const membersOf = (tree: Tree, top = ''): { name: string; text: string }[] =>
  Object.entries(tree).map(([path, text]) => ({ name: `${top}${path}`, text }));
