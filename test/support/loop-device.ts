import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export type LoopDevice = {
  /** `/dev/loop7` */
  readonly path: string;
  readonly detach: () => void;
};

/** A block device over a file. */
export function attachLoop(file: string, options: readonly string[] = []): LoopDevice {
  const args = ['--find', '--show', ...options, file];
  const path = execFileSync('losetup', args, { encoding: 'utf8' }).trim();
  return {
    path,
    detach() {
      execFileSync('losetup', ['--detach', path]);
    },
  };
}

/** Whether this process may attach loop devices; in CI it must. */
export function mayAttachLoops(): boolean {
  const directory = mkdtempSync(join(tmpdir(), 'sealift-loop-'));
  try {
    const file = join(directory, 'image');
    writeFileSync(file, '');
    truncateSync(file, 1 << 20);
    attachLoop(file).detach();
    return true;
  } catch (error) {
    if (process.env['CI'] === 'true') throw error;
    console.warn('tests of block devices are skipped: this process may not attach loop devices');
    return false;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
