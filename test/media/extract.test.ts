import { execFileSync } from 'node:child_process';
import { copyFile, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRedaction } from '../../src/base/text/redact.ts';
import { runProgram } from '../../src/cli/program.ts';
import { openIso } from '../../src/iso/read/open.ts';
import { readKargAreas } from '../../src/iso/coreos/kargs.ts';
import { makeCoreosIso, makeTestDirectory } from '../support/iso.ts';
import { writeMinimalRecipe } from '../support/minimal-recipe.ts';
import { requireTool } from '../support/tools.ts';

const redaction = createRedaction();

const hasTools = ['genisoimage', 'isohybrid', 'mformat', 'xz', 'bsdtar']
  .map(requireTool)
  .every(Boolean);
const ROOTFS = 'images/pxeboot/rootfs.img';

describe.skipIf(!hasTools)('parts of a live ISO of CoreOS', () => {
  let directory: string;
  let other: string;
  beforeAll(async () => {
    directory = await makeTestDirectory();
    other = await makeTestDirectory();
    const full = await makeCoreosIso(directory, { files: { 'coreos/miniso.dat': 131_072 } });
    const minimal = await makeCoreosIso(other, { without: [ROOTFS, 'coreos/miniso.dat'] });
    await writeMinimalRecipe(full, minimal);
  });
  afterAll(async () => {
    for (const each of [directory, other]) await rm(each, { recursive: true });
  });

  type Ran = { readonly code: number; readonly stderr: string };

  const run = (...args: readonly string[]): Promise<Ran> => runIn(['extract', ...args]);

  async function runIn(args: readonly string[]): Promise<Ran> {
    const [stdout, stderr] = [new PassThrough(), new PassThrough()];
    stdout.resume();
    let text = '';
    stderr.on('data', (piece: Buffer) => (text += piece.toString()));
    const { signal } = new AbortController();
    const fixed = { redaction, isTTY: false, env: {}, now: Date.now };
    const host = { ...fixed, stdout, stderr, cwd: directory, signal };
    return { code: await runProgram(args, host), stderr: text };
  }

  it('extracted for network boot are the files that bsdtar finds', async () => {
    expect(await run('pxe', 'test.iso', '--out', 'pxe')).toMatchObject({ code: 0 });
    for (const name of ['initrd.img', 'rootfs.img', 'vmlinuz']) {
      const expected = execFileSync('bsdtar', ['-xOf', 'test.iso', `images/pxeboot/${name}`], {
        cwd: directory,
      });
      expect((await readFile(join(directory, 'pxe', `test-${name}`))).equals(expected)).toBe(true);
    }
  });

  it('make the minimal ISO of the recipe, with an address instead of a volume', async () => {
    const url = 'https://media.example.com/rootfs.img';
    expect(await run('minimal-iso', 'test.iso', '--out', 'min', '--rootfs-url', url)).toMatchObject(
      { code: 0 },
    );
    const iso = await openIso(join(directory, 'min/test-minimal.iso'));
    expect(iso.fileSize).toBe((await readFile(join(other, 'test.iso'))).length);
    const kargs = await readKargAreas(iso);
    expect(kargs.text).toBe(`${kargs.default} coreos.live.rootfs_url=${url}`);
    expect(kargs.default).not.toContain('coreos.liveiso');
    await iso.close();
    // bsdtar finds the tree that genisoimage made for the recipe; arguments alone are others.
    const made = readTree(join(directory, 'min/test-minimal.iso'));
    const wanted = readTree(join(other, 'test.iso'));
    expect([...made.keys()]).toEqual([...wanted.keys()]);
    expect(made.has(ROOTFS)).toBe(false);
    const changed = [...made].filter(([name, sum]) => wanted.get(name) !== sum);
    expect(changed.map(([name]) => name)).toEqual(
      ['EFI/redhat/grub.cfg', 'coreos/kargs.json', 'isolinux/isolinux.cfg'].sort(),
    );
  });

  it('extracted as the root file system are that file alone', async () => {
    expect(await run('rootfs', 'test.iso', '--out', 'rootfs')).toMatchObject({ code: 0 });
    expect(await readdir(join(directory, 'rootfs'))).toEqual(['test-rootfs.img']);
    const sum = execFileSync('sha256sum', [join(directory, 'rootfs/test-rootfs.img')], {
      encoding: 'utf8',
    });
    expect(sum.slice(0, 64)).toBe(readTree(join(directory, 'test.iso')).get(ROOTFS));
  });

  it('are extracted again by the same command, which replaces files of the same bytes alone', async () => {
    const again = ['pxe', 'test.iso', '--out', 'again'] as const;
    expect(await run(...again)).toMatchObject({ code: 0 });
    await rm(join(directory, 'again/test-vmlinuz')); // as a killed run leaves them
    expect(await run(...again)).toMatchObject({ code: 0 });
    await writeFile(join(directory, 'again/test-initrd.img'), 'other bytes');
    const { code, stderr } = await run(...again);
    expect([code, stderr]).toEqual([2, expect.stringContaining('[output.exists]')]);
    expect(await readFile(join(directory, 'again/test-initrd.img'), 'utf8')).toBe('other bytes');
    expect((await readdir(join(directory, 'again'))).sort()).toEqual([
      'test-initrd.img',
      'test-rootfs.img',
      'test-vmlinuz',
    ]);
  });

  it('are refused with a code for each reason', async () => {
    const plain = await makeCoreosIso(other, { without: ['coreos/miniso.dat'] });
    const custom = join(directory, 'custom.iso');
    await copyFile(join(directory, 'test.iso'), custom);
    const host = ['customize', custom, '--kargs-append', 'quiet', '--in-place'];
    expect(await runIn(host)).toMatchObject({ code: 0 });
    for (const [code, args] of [
      ['extract.no-recipe', ['minimal-iso', plain]],
      ['extract.customised', ['minimal-iso', custom]],
      ['extract.rootfs-url', ['minimal-iso', 'test.iso', '--rootfs-url', 'http://a/b c']],
      ['kargs.special', ['minimal-iso', 'test.iso', '--rootfs-url', 'http://a/?b=c&d=e']],
    ] as const) {
      const refused = await run(...args, '--out', 'none');
      expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining(`[${code}]`)]);
    }
    expect(await readdir(join(directory, 'none'))).toEqual([]);
  });

  it('are refused when the minimal ISO does not have the digest of its recipe', async () => {
    const bytes = await readFile(join(directory, 'test.iso'));
    const iso = await openIso(join(directory, 'test.iso'));
    const node = await iso.find('/images/pxeboot/initrd.img');
    await iso.close();
    const at = node?.kind === 'file' ? (node.extents[0]?.offset ?? 0) : 0;
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    await writeFile(join(directory, 'bad.iso'), bytes);
    const { code, stderr } = await run('minimal-iso', 'bad.iso', '--out', 'bad');
    expect([code, stderr]).toEqual([5, expect.stringContaining('[miniso.wrong-digest]')]);
  });
});

/** SHA-256 of each file, as bsdtar and sha256sum have it. */
function readTree(iso: string): ReadonlyMap<string, string> {
  const names = execFileSync('bsdtar', ['-tf', iso], { encoding: 'utf8' }).split('\n');
  const files = names.filter(
    (name) => name !== '' && !names.some((other) => other.startsWith(`${name}/`)) && name !== '.',
  );
  const script = 'for name; do bsdtar -xOf "$0" "$name" | sha256sum; done';
  const sums = execFileSync('sh', ['-c', script, iso, ...files], { encoding: 'utf8' }).split('\n');
  const all = files.map((name, at) => [name, (sums[at] ?? '').slice(0, 64)] as const);
  return new Map(all.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}
