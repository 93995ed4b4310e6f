import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mayMount } from './may-mount.ts';
import { requireTool } from './tools.ts';

/** A file system that clones files, on a loop device. */
export type XfsMount = { readonly path: string; readonly close: () => void };

export const mayMountXfs = (): boolean => requireTool('mkfs.xfs') && mayMount();

/** @param size for truncate(1); nothing is taken of it that is not written */
export function mountXfs(size = '600M'): XfsMount {
  const folder = mkdtempSync(join(tmpdir(), 'sealift-xfs-'));
  const [image, path] = [join(folder, 'image'), join(folder, 'mnt')];
  const sh = (line: string): void => {
    execFileSync('sh', ['-ec', `PATH=$PATH:/usr/sbin:/sbin; ${line}`], { stdio: 'ignore' });
  };
  sh(
    `truncate -s ${size} ${image}; mkfs.xfs -q -m reflink=1 ${image}; mkdir ${path}; mount -o loop ${image} ${path}`,
  );
  return {
    path,
    close() {
      sh(`umount ${path}`);
      rmSync(folder, { recursive: true });
    },
  };
}
