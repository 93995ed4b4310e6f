import { gzipSync } from 'node:zlib';

/** An Ignition 3.2.0 file entry with its bytes inline. */
export function fileEntry(path: string, mode: number, text: string): object {
  const source = `data:text/plain;charset=utf-8;base64,${Buffer.from(text).toString('base64')}`;
  return { path, mode, overwrite: true, user: { name: 'root' }, contents: { source } };
}

/** A gzipped newc archive of one regular file, NUL-padded to a multiple of 4: an initrd to append. */
export function packInitrd(name: string, text: string): Buffer {
  const archive = Buffer.concat([
    encodeMember(name, Buffer.from(text)),
    encodeMember('TRAILER!!!', Buffer.alloc(0)),
  ]);
  const packed = gzipSync(archive);
  return Buffer.concat([packed, Buffer.alloc(-packed.length & 3)]);
}

/** cpio(5) "New ASCII Format": thirteen fields of eight hexadecimal digits, name and data padded to 4. */
function encodeMember(name: string, data: Buffer): Buffer {
  const mode = name === 'TRAILER!!!' ? 0 : 0o100644;
  const fields = [1, mode, 0, 0, 1, 0, data.length, 0, 0, 0, 0, name.length + 1, 0];
  const header = `070701${fields.map((field) => field.toString(16).padStart(8, '0')).join('')}`;
  const head = Buffer.from(`${header}${name}\0`);
  const pad = (size: number): Buffer => Buffer.alloc(-size & 3);
  return Buffer.concat([head, pad(head.length), data, pad(data.length)]);
}
