import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { File } from '../../src/ignition/index.ts';
import { readContents } from './node-configs.ts';
import { requireTool } from './tools.ts';

export type Run = { readonly exitCode: number; readonly stdout: string; readonly stderr: string };

/**
 * Whether this machine can run scripts in a root of their own: an overlay over the machine's root in
 * a mount namespace, so that nothing they write stays. That takes root, and a container that may
 * mount. In CI (CI=true) its absence fails.
 */
export function hasThrowAwayRoot(): boolean {
  if (!requireTool('unshare') || !requireTool('chroot')) return false;
  const probe = ['--mount', 'mount', '-t', 'tmpfs', 'tmpfs', tmpdir()];
  if (spawnSync('unshare', probe, { stdio: 'ignore' }).status === 0) return true;
  if (process.env['CI'] === 'true') throw new Error('CI needs root that may mount');
  console.warn('tests of scripts are skipped: they need root that may mount');
  return false;
}

// Mounts end with the namespace. /proc shows the mounts to mountpoint(1); systemd needs the cgroups of /sys.
const ENTER = `
set -e
mount --make-rprivate /
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
mount -t proc proc "$1/root/proc"
mount --rbind /dev "$1/root/dev"
mount --rbind /sys "$1/root/sys"
mount -t tmpfs tmpfs "$1/root/run"
mount -t tmpfs tmpfs "$1/root/tmp"
cp --recursive --preserve=mode "$2/." "$1/root/"
exec chroot "$1/root" bash --norc -c "$3" </dev/null
`;

/** Runs a bash script as root of a machine that has these files besides its own; 60 s at most. */
export async function runInThrowAwayRoot(
  files: readonly File[],
  script: string,
  { timeoutMs = 60_000 } = {},
): Promise<Run> {
  const directory = mkdtempSync(join(tmpdir(), 'sealift-root-'));
  const seed = join(directory, 'seed');
  const mount = join(directory, 'mount');
  mkdirSync(mount);
  mkdirSync(seed);
  for (const file of files) {
    const path = join(seed, file.path);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, readContents(file), { mode: file.mode ?? 0o644 });
  }
  try {
    const enter = ['bash', '--norc', '-c', ENTER, 'enter', mount, seed, script];
    return await run(['--mount', '--fork', ...enter], timeoutMs);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function run(args: readonly string[], timeout: number): Promise<Run> {
  const env = { PATH: '/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' };
  return new Promise((resolve) => {
    execFile('unshare', args, { env, timeout }, (error, stdout, stderr) => {
      const exitCode = typeof error?.code === 'number' ? error.code : error === null ? 0 : -1;
      resolve({ exitCode, stdout, stderr });
    });
  });
}
