import { execFileSync } from 'node:child_process';
import { mkdtempSync, mkdirSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { mayMount } from '../support/may-mount.ts';
import { requireTool } from '../support/tools.ts';

/*
 * Copies of a template, one for each attempt: a folder, or a folder on a disk that can lose its power.
 * The disk is a file on a loop device. What the file system has not sent to it is lost in a cut; then the
 * file as it stood is mounted in its place.
 */

export type Copy = {
  /** The folder, whose name no other copy has. */
  readonly path: string;
  /** A file for the trace, which survives a cut. */
  readonly trace: string;
  readonly close: () => void;
};

export type Disk = Copy & {
  /**
   * Cuts the power.
   *
   * @param isTorn true if the names were written before, but no contents that were not synced
   */
  readonly cut: (isTorn: boolean) => void;
};

/** Whether this process may make such disks; in CI it must. */
export const mayCutPower = (): boolean => requireTool('mkfs.ext4') && mayMount();

export function copyTemplate(template: string): Copy {
  const base = mkdtempSync(`${template}-`);
  const path = join(base, basename(base));
  sh('mkdir "$1"; cp -a --reflink=auto "$2/." "$1"', path, template);
  return {
    path,
    trace: join(base, 'trace'),
    close() {
      rmSync(base, { recursive: true, force: true });
    },
  };
}

/**
 * The worst that ext4 permits: a new file that takes the name of another one is not written for that, and
 * nothing is written by a timer.
 */
const OPTIONS = 'loop,noauto_da_alloc,commit=900';

/** Larger than a template and all that a command makes of it; nothing is taken of it that is not written. */
const SIZE = '256M';

export function copyToDisk(template: string): Disk {
  const base = mkdtempSync(`${template}-`);
  const [image, mount] = [join(base, 'image'), join(base, 'mount')];
  const path = join(mount, basename(base));
  mkdirSync(mount);
  sh(`truncate -s ${SIZE} "$1"; mkfs.ext4 -q "$1"; mount -o ${OPTIONS} "$1" "$2"`, image, mount);
  sh('mkdir "$1"; cp -a "$2/." "$1"; sync -f "$1"', path, template);
  return {
    path,
    trace: join(base, 'trace'),
    cut(isTorn) {
      if (isTorn) sh('touch "$1/torn"; sync "$1/torn"', mount); // the journal has all names
      sh(
        `cp --sparse=always "$1" "$1.cut"; umount "$2"; mv "$1.cut" "$1"; mount -o ${OPTIONS} "$1" "$2"`,
        image,
        mount,
      );
    },
    close() {
      sh('umount "$1"', mount);
      rmSync(base, { recursive: true, force: true });
    },
  };
}

function sh(script: string, ...args: readonly string[]): void {
  const line = `PATH=$PATH:/usr/sbin:/sbin; ${script}`;
  execFileSync('sh', ['-ec', line, 'sh', ...args], { stdio: ['ignore', 'ignore', 'inherit'] });
}
