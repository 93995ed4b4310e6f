import { execFileSync } from 'node:child_process';
import { appendFile, mkdir, readdir, readFile, rmdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { digestFile, hasFile } from '../../src/base/disk/files.ts';
import { startSealift, type Child } from '../support/child.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { mayMount } from '../support/may-mount.ts';
import { requireTool } from '../support/tools.ts';

const hasTools = ['genisoimage', 'isohybrid'].map((tool) => requireTool(tool)).every(Boolean);

const KILLER = new URL('../support/kill-at-word.mjs', import.meta.url).href;

describe.skipIf(!hasTools)('a build that is killed or refused its place', () => {
  let world: LiveWorld;
  let whole: string;
  const at = (name: string): string => join(world.directory, name);

  beforeAll(async () => {
    world = await createLiveWorld();
    await world.writeConfig();
    const { code, stderr } = await build('whole.iso').ended;
    expect(code, stderr).toBe(0);
    whole = await digestFile(at('whole.iso'));
  }, 60_000);
  afterAll(() => world.close());

  /** Each output has a work directory of its own. */
  const build = (output: string, env: NodeJS.ProcessEnv = {}): Child => {
    const args = ['--output', output, '--work-dir', `work-${output}`, '--log-format', 'json'];
    return startSealift(['build', ...args], { cwd: world.directory, env });
  };

  /** Kills a build as soon as it has made a file that `isMade` finds. */
  async function killWhen(output: string, isMade: () => Promise<boolean>): Promise<void> {
    const child = build(output);
    while (!(await isMade()) && child.process.exitCode === null) {
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    child.process.kill('SIGKILL');
    await child.ended;
  }

  async function expectWhole(output: string): Promise<void> {
    const { code, stderr } = await build(output).ended;
    expect(code, stderr).toBe(0);
    expect(await digestFile(at(output))).toBe(whole);
    const left = (await readdir(world.directory)).filter((name) => name.startsWith(output));
    expect(left.sort()).toEqual([output, `${output}.report.json`, `${output}.sha256`]);
    const checksum = await readFile(at(`${output}.sha256`), 'utf8');
    expect(checksum).toBe(`${whole.slice('sha256:'.length)}  ${output}\n`);
  }

  const hasAny = async (directory: string): Promise<boolean> =>
    (await hasFile(at(directory))) && (await readdir(at(directory))).length > 0;

  it.each([
    ['at its start', 'start.iso', (o: string) => hasFile(at(`${o}.lock`))],
    ['while the base ISO is taken out', 'base.iso', (o: string) => hasAny(`work-${o}/cache/base`)],
  ])('ends with a whole ISO when it runs again after SIGKILL %s', async (_when, output, isMade) => {
    await killWhen(output, () => isMade(output));
    if (await hasFile(at(output))) expect(await digestFile(at(output))).toBe(whole);
    await expectWhole(output);
  });

  it.each([
    ['after the pour and before the seal', 'pour.iso', '/pour.iso.partial.sha256'],
    ['in the seal, before the output has its name', 'unnamed.iso', '/unnamed.iso'],
  ])('fetches no blob again when it was killed %s', async (_when, output, word) => {
    const { code, stderr } = await build(output, {
      NODE_OPTIONS: `--import=${KILLER}`,
      KILL_AT: word,
    }).ended;
    expect([code, stderr]).toEqual([null, expect.stringContaining('"stage":"pour ISO"')]);
    expect([await hasFile(at(output)), await hasFile(at(`${output}.partial`))]).toEqual([
      false,
      true,
    ]);
    const before = world.registry.requests.length;
    await expectWhole(output);
    const asked = world.registry.requests.slice(before);
    expect(asked.filter((request) => request.includes('/blobs/'))).toEqual([]);
  });

  it.each([
    ['report', 'report.iso', '/report.iso.report.json'],
    ['checksum', 'checksum.iso', '/checksum.iso.sha256'],
  ])(
    'ends with a whole ISO when it was killed before the %s has its name',
    async (_what, output, word) => {
      const { code } = await build(output, { NODE_OPTIONS: `--import=${KILLER}`, KILL_AT: word })
        .ended;
      expect([code, await digestFile(at(output))]).toEqual([null, whole]);
      await expectWhole(output);
    },
  );

  it('ignores a truncated journal line, and fetches no blob that is already written', async () => {
    const child = build('torn.iso');
    while (!(await hasFile(at('torn.iso.partial'))) && child.process.exitCode === null) {
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    await mkdir(at('torn.iso.report.json')); // the seal stops here: all is poured, nothing has its name
    const { code, stderr } = await child.ended;
    expect(code, stderr).toBe(2);
    expect(await hasFile(at('torn.iso'))).toBe(false);
    await rmdir(at('torn.iso.report.json'));
    await appendFile(at('torn.iso.partial.journal'), 'd 1');
    const before = world.registry.requests.length;
    await expectWhole('torn.iso');
    const asked = world.registry.requests.slice(before);
    expect(asked.filter((request) => request.includes('/blobs/'))).toEqual([]);
  });

  it.skipIf(!mayMount())(
    'reports a read-only output directory before anything is fetched',
    async () => {
      await mkdir(at('read-only'));
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'ro', 'none', at('read-only')]);
      try {
        const before = world.registry.requests.length;
        const { code, stderr } = await build('read-only/x.iso').ended;
        expect(code, stderr).toBe(7);
        expect(stderr).toMatch(/nothing can be written to .*read-only.*output\.unwritable/s);
        expect(world.registry.requests.length).toBe(before);
      } finally {
        execFileSync('umount', [at('read-only')]);
      }
    },
  );

  it('refuses a base ISO that is not from CoreOS', async () => {
    await mkdir(at('plain'));
    await writeFile(at('plain/readme'), 'no CoreOS');
    execFileSync('genisoimage', [
      '-quiet',
      '-R',
      '-V',
      'PLAIN',
      '-o',
      at('plain.iso'),
      at('plain'),
    ]);
    const reasons = {
      'plain.iso': 'base-iso.not-coreos',
      'appliance-config.yaml': 'iso.not-iso9660',
    };
    for (const [file, reason] of Object.entries(reasons)) {
      const { code, stderr } = await startSealift(
        ['build', '--output', 'refused.iso', '--base-iso', file],
        { cwd: world.directory },
      ).ended;
      expect(code, stderr).toBe(5);
      expect(stderr).toContain(reason);
      expect(await hasFile(at('refused.iso'))).toBe(false);
    }
  });

  it('leaves no embedded secret readable for other users of the machine', async () => {
    await writeFile(
      at('hosts.json'),
      '{"auths":{"hosts.example":{"auth":"aG9zdHM6dG9wLXdvcmQ="}}}',
    );
    await world.writeConfig('  embed:', '    pullSecret: file:hosts.json');
    const { code, stderr, stdout } = await build('secret.iso').ended;
    await world.writeConfig();
    expect(code, stderr).toBe(0);
    expect(stderr + stdout).not.toContain('aG9zdHM6dG9wLXdvcmQ=');
    const open: string[] = [];
    const files = await readdir(world.directory, { recursive: true, withFileTypes: true });
    for (const file of files.filter((entry) => entry.isFile())) {
      const path = join(file.parentPath, file.name);
      if (!path.includes('secret.iso')) continue;
      const isOpen = ((await stat(path)).mode & 0o077) !== 0;
      const bytes = await readFile(path);
      if (isOpen && bytes.includes('aG9zdHM6dG9wLXdvcmQ')) open.push(path);
    }
    expect(open).toEqual([]);
    expect((await stat(at('secret.iso'))).mode & 0o777).toBe(0o600);
  });
});
