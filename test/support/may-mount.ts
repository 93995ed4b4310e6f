import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Whether this process may mount; in CI it must. */
export function mayMount(): boolean {
  const directory = mkdtempSync(join(tmpdir(), 'sealift-mount-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', 'none', directory], { stdio: 'ignore' });
    execFileSync('umount', [directory]);
    return true;
  } catch (error) {
    if (process.env['CI'] === 'true') throw error;
    console.warn('tests that mount are skipped: this process may not');
    return false;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
