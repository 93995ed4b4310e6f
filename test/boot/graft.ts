import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { runProcess } from '../../src/base/process.ts';
import { EMBED_AREA_SIZE, VOLUME_ID } from './base-iso.ts';
import { bootMenus } from './boot-menus.ts';

export type Graft = {
  readonly base: string;
  /** What is added at the root of the ISO; the edited files are written here, too. */
  readonly tree: string;
  readonly iso: string;
  readonly kargs: string;
  /** The Ignition config of the embed area. */
  readonly user: object;
  /** The Ignition config of an initrd of its own. */
  readonly bootstrap: object;
  /** That of the base ISO unless another is named here and in `kargs`. */
  readonly volumeId?: string;
};

const BOOTSTRAP = 'images/bootstrap-appliance.img';

/** Makes a medium of the base ISO with xorriso: what our program is compared with. */
export async function graft(options: Graft): Promise<void> {
  const { base, tree, iso, kargs, volumeId = VOLUME_ID } = options;
  const menus = bootMenus({ volumeId, kargs, initrds: [`/${BOOTSTRAP}`] });
  const user = packInitrd('config.ign', JSON.stringify(options.user));
  const bootstrap = JSON.stringify(options.bootstrap);
  const files: readonly (readonly [string, string | Buffer])[] = [
    ['EFI/redhat/grub.cfg', menus.grub],
    ['isolinux/isolinux.cfg', menus.isolinux],
    ['images/ignition.img', Buffer.concat([user], EMBED_AREA_SIZE)],
    [BOOTSTRAP, packInitrd('/usr/lib/ignition/base.d/99-bootstrap.ign', bootstrap)],
  ];
  for (const [path, content] of files) {
    await mkdir(dirname(join(tree, path)), { recursive: true });
    await writeFile(join(tree, path), content);
  }
  await runProcess('xorriso', [
    ...['-indev', base, '-outdev', iso, '-boot_image', 'any', 'replay', '-overwrite', 'on'],
    ...['-volid', volumeId, '-map', tree, '/', '-commit'],
  ]);
}

/** An Ignition 3.2.0 file entry with its bytes inline. */
export function fileEntry(path: string, mode: number, text: string): object {
  const source = `data:text/plain;charset=utf-8;base64,${Buffer.from(text).toString('base64')}`;
  return { path, mode, overwrite: true, user: { name: 'root' }, contents: { source } };
}

/** A gzipped newc archive of one regular file, NUL-padded to a multiple of 4: an initrd to append. */
function packInitrd(name: string, text: string): Buffer {
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
