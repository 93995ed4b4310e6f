import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createProgram } from '../../src/cli/program.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { attachLoop, mayAttachLoops, type LoopDevice } from '../support/loop-device.ts';
import { makeTinyIso } from '../support/tiny-iso.ts';

const isRoot = process.geteuid?.() === 0;

const hasLoops = mayAttachLoops();

let world: LiveWorld;
let loop: LoopDevice | undefined;
beforeAll(async () => {
  world = await createLiveWorld();
  await world.writeConfig();
  const at = (name: string): string => join(world.directory, name);
  writeFileSync(at('tiny.iso'), makeTinyIso());
  writeFileSync(at('file'), 'text\n');
  writeFileSync(
    at('installation.yaml'),
    'apiVersion: v1beta1\nkind: ImageBasedInstallationConfig\n',
  );
  mkdirSync(at('folder'));
  symlinkSync('loop', at('loop'));
  execFileSync('mkfifo', [at('pipe')]);
  if (isRoot) execFileSync('mknod', [at('device'), 'b', '259', '1048000']);
  if (!hasLoops) return;
  writeFileSync(at('image'), Buffer.alloc(1 << 20));
  loop = attachLoop(at('image'));
  truncateSync(at('image'), 0); // what is read behind the end of its file is an error of the device
  symlinkSync(loop.path, at('stick'));
});
afterAll(async () => {
  loop?.detach();
  await world.close();
});

/** What is named in the place of a file: what the system answers, or an open that waits for ever. */
const INPUTS: readonly (readonly [what: string, input: string])[] = [
  ['a file that is not there', 'missing'],
  ['a folder', 'folder'],
  ['a name below a file', 'file/x'],
  ['a link to itself', 'loop'],
  ['a name that is too long', 'n'.repeat(256)],
  ['a named pipe', 'pipe'],
  ...(isRoot ? [['a device that the kernel does not have', 'device'] as const] : []),
  ...(hasLoops ? [['a device that answers with errors', 'stick'] as const] : []),
];

const X = '%';
const PRIVATE = 'oci://127.0.0.1:1/a/b:c';

/** Every command, with what stands in each place of an input. */
const CALLS: Readonly<Record<string, readonly (readonly string[])[]>> = {
  'import imageset': [[X]],
  'validate': [[X], ['appliance-config.yaml', X]],
  'config show': [[X]],
  'plan': [[X], ['--base-iso', X], ['--seed', X], ['--set', `mirrorPath=${X}`]],
  'plan upgrade-iso': [[X], ['--seed', X]],
  'plan disk-image': [
    [X, '--metal-image', X],
    ['--metal-image', X],
  ],
  'plan deployment-iso': [['--metal-image', X, '--post-script', X]],
  'plan installation-iso': [[X], ['installation.yaml', '--base-iso', X]],
  'build': [[X], ['--base-iso', X], ['--seed', X], ['--plan', X], ['--locked', '--lock', X]],
  'build disk-image': [
    [X, '--metal-image', X],
    ['--metal-image', X],
  ],
  'build deployment-iso': [
    [X, '--metal-image', X],
    ['--metal-image', X],
    ['--metal-image', 'tiny.iso', '--post-script', X],
  ],
  'build upgrade-iso': [[X], ['--seed', X], ['--plan', X]],
  'build installation-iso': [
    [X],
    ['installation.yaml', '--base-iso', X],
    ['installation.yaml', '--coreos-stream', X],
    ['installation.yaml', '--ca-bundle', X],
  ],
  'cache ls': [[X]],
  'cache prune': [[X, '--max-size', '1B']],
  'cache verify': [[X]],
  'lock': [[X], ['--base-iso', X]],
  'lock disk-image': [[X, '--metal-image', X]],
  'lock deployment-iso': [[X, '--metal-image', X]],
  'lock upgrade-iso': [[X]],
  'lock installation-iso': [[X], ['installation.yaml', '--base-iso', X]],
  'reproduce': [
    [X],
    ['tiny.iso', '--config', X],
    ['tiny.iso', '--config', 'appliance-config.yaml', '--lock', X],
  ],
  'why': [[X], ['a', '--iso', X]],
  'resources': [[X]],
  'catalog list': [[`file:${X}`]],
  'catalog show': [[`file:${X}`], ['--config', X]],
  'config-iso build': [
    [X, '--out', 'out'],
    ['folder', '--out', 'out', '--template', X],
  ],
  'config-iso check': [
    [X, '--medium', 'tiny.iso'],
    ['tiny.iso', '--medium', X],
  ],
  'config-iso diff': [
    [X, 'tiny.iso'],
    ['tiny.iso', X],
  ],
  'config-iso export': [
    [X, '--as', 'acm-import'],
    ['folder', '--as', 'acm-import', '--template', X],
    ['folder', '--as', 'bmh', '--cluster-image-set', 'a', '--hosts', X],
  ],
  'config-iso generations': [
    ['a', '--keys', X],
    ['a', '--out', X],
  ],
  'config-iso show': [[X]],
  'config-iso validate': [[X], ['folder', '--template', X]],
  'inspect': [[X]],
  'diff': [
    [X, 'tiny.iso'],
    ['tiny.iso', X],
  ],
  'extract pxe': [[X, '--out', 'out']],
  'extract rootfs': [[X, '--out', 'out']],
  'extract minimal-iso': [[X, '--out', 'out']],
  'extract installer': [[X, '--out', 'out']],
  'customize': [
    [X, '--show'],
    [X, '--in-place', '--hostname', 'a'],
    [X, '--output', 'new.iso', '--hostname', 'a'],
    ['tiny.iso', '--output', 'new.iso', '--nmstate', X],
    ['tiny.iso', '--output', 'new.iso', '--ignition-override', X],
    ['tiny.iso', '--output', 'new.iso', '--site', X],
  ],
  'delta': [
    [X, 'tiny.iso', '--output', 'new.delta'],
    ['tiny.iso', X, '--output', 'new.delta'],
  ],
  'apply': [
    [X, 'file', '--output', 'new.iso'],
    ['tiny.iso', X, '--output', 'new.iso'],
    ['tiny.iso', 'file', X, '--output', 'new.iso'],
    [X, 'file', '--in-place'],
    ['tiny.iso', X, '--in-place'],
  ],
  'repair': [
    [X, '--from', 'tiny.iso'],
    ['tiny.iso', '--from', X],
    ['tiny.iso', '--from', 'registries', '--config', X],
  ],
  'push': [[X, PRIVATE]],
  'pull': [
    [PRIVATE, '--output', 'new.iso', '--seed', X],
    [PRIVATE, '--output', 'new.iso', '--config', X],
  ],
  'ls': [[X]],
  'cat': [[X, 'a']],
  'ignition show': [[X]],
  'verify': [[X]],
  'rehearse': [[X], ['tiny.iso', '--config-image', X], ['tiny.iso', '--site', X]],
  'serve': [
    ['--data', 'data', '--key', `file:${X}`],
    ['--data', X, '--key', 'env:HOME'],
  ],
  'serve doctor': [
    ['--data', 'data', '--key', `file:${X}`],
    ['--data', 'data', '--key', 'env:HOME', '--tls-cert', X, '--tls-key', X],
  ],
  'serve rekey': [
    ['--data', 'data', '--key', `file:${X}`],
    ['--data', X, '--key', 'env:HOME'],
  ],
  'audit verify': [[X], ['tiny.iso', X]],
  'token issue': [['--private-key', `file:${X}`, '--user', 'a']],
  'registry serve': [[X], ['tiny.iso', '--tls-cert', X, '--tls-key', X]],
};

/** Commands that read no file that is named. */
const OTHERS = ['init', 'token keys', 'completion', 'version', 'help', 'explain'];

const listCommands = (parent: Command, prefix = ''): readonly string[] =>
  parent.commands.flatMap((command) => {
    const name = `${prefix}${command.name()}`;
    const below = listCommands(command, `${name} `);
    return below.length > 0 && !(name in CALLS) ? below : [name, ...below];
  });

it('every command that reads a named file is tested', () => {
  expect([...Object.keys(CALLS), ...OTHERS]).toEqual(
    expect.arrayContaining([...listCommands(createProgram(world.host()))]),
  );
});

describe.each(INPUTS)('%s is never reported as a bug, nor waited for, by', (_what, input) => {
  it.each(Object.keys(CALLS))('%s', async (name) => {
    for (const call of CALLS[name] ?? []) {
      const args = [...name.split(' '), ...call.map((word) => word.replace(X, input))];
      const { exitCode, stderr } = await world.run(...args);
      const answer = `${args.join(' ')}: ${stderr}`;
      expect([exitCode, answer]).toEqual([expect.toBeOneOf([0, 2, 3, 4, 5, 7, 8]), answer]);
      expect(answer).not.toMatch(/bug:|^ +at /m);
    }
  });
});
