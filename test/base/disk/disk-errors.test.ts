import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { explainOutputError, explainWriteError } from '../../../src/base/disk/disk-errors.ts';
import { bundleProgram } from '../../support/bundle-program.ts';

const errorOf = (code: string): Error => Object.assign(new Error(code), { code });

it.each([
  ['ENOSPC', /^the disk is full/],
  ['EDQUOT', /^the disk quota is used up/],
  ['EROFS', /^the file system is read-only/],
  ['EACCES', /^nothing can be written to/],
  ['EMFILE', /^too many files are open/],
  ['ENFILE', /^too many files are open/],
  ['ENOMEM', /^the system has no memory left/],
  ['EFBIG', /^the file system cannot store a file as large/],
])('a failure of the disk is named as it is: %s', (code, message) => {
  const path = join(tmpdir(), 'no-such-folder', 'a.iso');
  for (const explain of [explainOutputError, explainWriteError]) {
    expect((explain(errorOf(code), path) as Error).message).toMatch(message);
  }
});

const mount = ['--mount', 'sh', '-c', 'mount -t tmpfs -o nr_inodes=8 tmpfs "$1"', 'sh', tmpdir()];
it.runIf(spawnSync('unshare', mount).status === 0)(
  'a file system without inodes is not called full',
  async () => {
    const place = mkdtempSync(join(tmpdir(), 'inodes-'));
    const code = [
      "import { writeFileAtomic } from '../../src/base/disk/files.ts';",
      'for (let i = 0; i < 12; i += 1) await writeFileAtomic(`${process.argv[2]}/new/${i}`, "x")',
      '  .catch((e) => { console.log(e.code, e.message); process.exit(0); });',
    ].join('\n');
    const program = await bundleProgram('disk-errors', { source: code });
    const script = 'mount -t tmpfs -o nr_inodes=8 tmpfs "$1"; exec "$2" "$3" "$1"';
    const args = [place, process.execPath, program];
    const { stdout, stderr } = spawnSync('unshare', ['--mount', 'sh', '-c', script, 'sh', ...args]);
    rmSync(place, { recursive: true });
    expect(stdout.toString(), stderr.toString()).toMatch(
      /^disk\.full the file system has no inodes left/,
    );
  },
);
