import { spawnSync } from 'node:child_process';
import { chmod, chown, cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isRoot, NOBODY } from '../support/as-user.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Tells on stderr about the compiled code that a script was given. */
const HOOK = `
const vm = require('vm');
vm.Script = class extends vm.Script {
  constructor(source, options) {
    super(source, options);
    const fate = this.cachedDataRejected ? 'refused' : 'used';
    process.stderr.write(options.cachedData === undefined ? 'none' : fate);
  }
};`;

let copy = '';
let compiled = '';
let bytes: Buffer;

beforeAll(async () => {
  copy = await mkdtemp(join(tmpdir(), 'sealift-start-'));
  for (const name of ['dist', 'templates', 'schema', 'package.json']) {
    await cp(join(ROOT, name), join(copy, name), { recursive: true });
  }
  const folder = join(copy, 'dist/compiled');
  const [name = ''] = await readdir(folder);
  compiled = join(folder, name);
  bytes = await readFile(compiled);
  await writeFile(join(copy, 'hook.cjs'), HOOK);
});
afterAll(() => rm(copy, { recursive: true }));

/** What became of the compiled code, in a run that must succeed in any case. */
function start(options: readonly string[] = []): string {
  const words = [...options, '-r', join(copy, 'hook.cjs'), join(copy, 'dist/cli/start.cjs')];
  const { status, stdout, stderr } = spawnSync(process.execPath, [...words, '--version'], {
    encoding: 'utf8',
  });
  expect([status, stdout]).toEqual([0, '0.1.0\n']);
  return stderr;
}

describe("V8's compiled code beside the program", () => {
  it('is used by the Node.js that built it', () => {
    expect(start()).toBe('used');
  });

  it('is refused by V8 under other flags, and the program is compiled', () => {
    expect(start(['--max-old-space-size=300'])).toBe('refused');
  });

  it('is not read if another user may write it', async () => {
    await chmod(compiled, 0o664);
    expect(start()).toBe('none');
    await chmod(compiled, 0o644);
    expect(start()).toBe('used');
  });

  it.runIf(isRoot)('is not read if it belongs to another user', async () => {
    await chown(compiled, NOBODY, NOBODY);
    expect(start()).toBe('none');
    await chown(compiled, 0, 0);
  });

  it('is not used if a byte of it has changed, or if its end is lost', async () => {
    for (const at of [0, 40, bytes.length >> 1, bytes.length - 1]) {
      const damaged = Buffer.from(bytes);
      damaged[at] = (damaged[at] ?? 0) ^ 0x10;
      await writeFile(compiled, damaged);
      expect(start()).toBe('none');
    }
    for (const length of [0, 31, bytes.length - 1]) {
      await writeFile(compiled, bytes.subarray(0, length));
      expect(start()).toBe('none');
    }
    await writeFile(compiled, bytes);
  });

  it('is not used by another program', async () => {
    const path = join(copy, 'dist/program-digest.json');
    const written = await readFile(path, 'utf8');
    await writeFile(path, written.replace(/[0-9a-f]{4}"/, 'ffff"'));
    expect(start()).toBe('none');
    await writeFile(path, written);
  });
});
