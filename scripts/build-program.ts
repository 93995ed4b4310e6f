import { chmod, mkdir, mkdtemp, readdir, readFile, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { transform } from 'esbuild';
import { startDemoWorld } from '../demo/world.ts';
import type { Digest } from '../src/base/digest.ts';
import { hasFile } from '../src/base/disk/files.ts';
import { runProcess } from '../src/base/process.ts';
import { digestProgram } from '../src/base/program.ts';
import { bundle, replaceFile } from './bundle.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const DIST = join(ROOT, 'dist');
const COMPILED = join(DIST, 'compiled');
const BEFORE = join(DIST, '.before');
/** A folder of this name is not part of the program's digest. */
const ASIDE = join(BEFORE, 'compiled');
const RECORD = fileURLToPath(new URL('record-compiled.mjs', import.meta.url));

/** The last step of the build: what the built program answers when it is asked which program it is. */
export async function buildProgram(): Promise<void> {
  await rm(BEFORE, { recursive: true, force: true });
  await mkdir(BEFORE, { recursive: true });
  if (await hasFile(COMPILED)) await rename(COMPILED, ASIDE); // of another program, unless nothing changed
  const { packages } = await bundle('src/cli/main.ts', join(DIST, 'cli'), {
    format: 'cjs',
  });
  await writeStart(join(DIST, 'cli/start.cjs'));
  await replaceFile(join(DIST, 'third-party-licenses.txt'), await joinLicenses(packages));
  const digest = await digestProgram(ROOT, DIST);
  await replaceFile(join(DIST, 'program-digest.json'), `${JSON.stringify({ digest })}\n`);
  await compileProgram(digest);
  await rm(BEFORE, { recursive: true });
}

/** The command: a file that any Node since 12 can read, and which then loads the program or says why not. */
async function writeStart(path: string): Promise<void> {
  const source = await readFile(join(ROOT, 'src/cli/start.cts'), 'utf8');
  const { code } = await transform(source, {
    loader: 'ts',
    platform: 'node',
    target: 'node12.22',
    format: 'cjs',
  });
  await replaceFile(path, `#!/usr/bin/env node\n${code}`);
  await chmod(path, 0o755);
}

/**
 * Leaves V8's compiled code beside the built program, for this Node alone; `start.cts` names and reads it. It has
 * the functions that `plan` needs, which most commands share. The code that an earlier build of the same program
 * left is taken again.
 */
async function compileProgram(digest: Digest): Promise<void> {
  const name = `${digest.slice('sha256:'.length)}-${process.version}-${process.arch}`;
  if (await hasFile(join(ASIDE, name))) return rename(ASIDE, COMPILED);
  const start = join(DIST, 'cli/start.cjs');
  const directory = await mkdtemp(join(tmpdir(), 'sealift-compile-'));
  const world = await startDemoWorld(directory);
  try {
    const options = { cwd: directory, env: { ...world.env, HOME: directory }, timeout: 120_000 };
    const file = join(COMPILED, `.${process.pid}`);
    await mkdir(COMPILED, { recursive: true, mode: 0o755 });
    await runProcess(process.execPath, [start, 'init'], options);
    await runProcess(process.execPath, [RECORD, file, start, 'plan'], options);
    await rename(file, join(COMPILED, name));
  } finally {
    await world.close();
    await rm(directory, { recursive: true });
  }
}

/** What the licenses of bundled packages want: that their texts travel with the program. */
async function joinLicenses(packages: readonly string[]): Promise<string> {
  const texts = packages.map(async (path) => {
    const folder = join(ROOT, path);
    const { name, version, license, homepage } = JSON.parse(
      await readFile(join(folder, 'package.json'), 'utf8'),
    ) as Record<'name' | 'version' | 'license' | 'homepage', string>;
    const files = (await readdir(folder)).filter((file) => /^(licen[cs]e|notice)/i.test(file));
    const contents = files.sort().map((file) => readFile(join(folder, file), 'utf8'));
    const text = contents.length > 0 ? await Promise.all(contents) : [`See ${homepage}`];
    return [`${name} ${version} (${license})`, ...text].join('\n\n');
  });
  return `${(await Promise.all(texts)).join(`\n\n${'-'.repeat(80)}\n\n`)}\n`;
}
