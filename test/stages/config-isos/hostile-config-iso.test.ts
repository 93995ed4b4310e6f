import { writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runProcess } from '../../../src/base/process.ts';
import { encodeSmallIso } from '../../../src/iso/lay-out/lay-out.ts';
import {
  createConfigIsoWorld,
  inFolder,
  type ConfigIsoWorld,
} from '../../support/config-iso-world.ts';
import { requireTool } from '../../support/tools.ts';

let world: ConfigIsoWorld;
beforeAll(async () => {
  world = await createConfigIsoWorld();
  write('plain.iso', '{"cluster_name":"plain"}');
});
afterAll(() => world.close());

function write(file: string, manifest: string, volumeId = 'cluster-config'): void {
  const bytes = Buffer.from(manifest);
  const files = [{ path: '/cluster-configuration/manifest.json', bytes }];
  writeFileSync(world.at(file), encodeSmallIso({ volumeId, directories: [], files, epoch: 0 }));
}

/** Escapes of C0 and C1, a carriage return, a turn of direction, and what looks like nothing. */
const COMMANDS = '\u001b[2J\u009b31m\r\u202e\u200b\u0007';
// eslint-disable-next-line no-control-regex -- they are what is looked for
const COMMANDING = /[\0-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e]/;

describe('a control character on an ISO', () => {
  it.each([
    ['a value', { cluster_name: COMMANDS }],
    ['a key', { [`x${COMMANDS}\ny`]: 'z' }],
    ['a network configuration', { raw_nm_state_config: `a: "${COMMANDS}"\n` }],
    ['a member of a list', { machine_networks: [COMMANDS] }],
  ])('is escaped in %s', async (_what, manifest) => {
    write('x.iso', JSON.stringify(manifest));
    for (const args of [
      ['show', 'x.iso'],
      ['diff', 'x.iso', 'plain.iso'],
      ['diff', 'plain.iso', 'x.iso'],
    ]) {
      const { stdout, stderr } = await world.run('config-iso', ...args);
      expect(stdout).not.toBe('');
      expect(stdout + stderr).not.toMatch(COMMANDING);
    }
  });

  it('is escaped in its label', async () => {
    write('x.iso', '{}', 'x\u001b[2J');
    const { exitCode, stderr } = await world.run('config-iso', 'show', 'x.iso');
    expect([exitCode, stderr]).toEqual([5, expect.stringContaining('config-iso.label')]);
    expect(stderr).not.toMatch(COMMANDING);
  });

  it.skipIf(!requireTool('genisoimage'))('is escaped in names of its files', async () => {
    world.write({
      'tree/cluster-configuration/manifest.json': '{}',
      'tree/extra-manifests/a\u001b[2J\nb.yaml': '',
    });
    const options = ['-quiet', '-R', '-V', 'cluster-config', '-o', world.at('x.iso')];
    await runProcess('genisoimage', [...options, world.at('tree')]);
    for (const args of [
      ['show', 'x.iso'],
      ['diff', 'x.iso', 'plain.iso'],
    ]) {
      const { stdout } = await world.run('config-iso', ...args);
      expect(stdout).toContain('/extra-manifests/a\\u001b[2J\\u000ab.yaml');
      expect(stdout).not.toMatch(COMMANDING);
    }
  });
});

it.each([
  ['that does not exist', 'nope', 'it does not exist'],
  ['that is a directory', '.', 'it is a directory'],
  ['that is a pipe', 'pipe', 'it is neither a regular file nor a block device'],
])('a medium %s is reported without waiting', async (_what, name, reason) => {
  if (name === 'pipe') await runProcess('mkfifo', [world.at(name)]);
  for (const args of [
    ['show', name],
    ['diff', 'plain.iso', name],
  ]) {
    const { exitCode, stderr } = await world.run('config-iso', ...args);
    expect([exitCode, stderr]).toEqual([3, expect.stringContaining(reason)]);
  }
});

it('control characters in the inputs are escaped', async () => {
  const site = { 'install-config.yaml': COMMANDS, 'image-based-config.yaml': COMMANDS };
  world.write(inFolder('sites', { [`x${COMMANDS}`]: '' }));
  world.write(inFolder('sites/a', site));
  world.write(inFolder(`sites/b${COMMANDS}\nc`, site));
  world.write({ ...inFolder('template', site), 'a.csv': `name,x\n"b${COMMANDS}",y\nc,\u202e\n` });
  world.write({ 'template/image-based-config.yaml': 'hostname: "{{ x }}"' });
  for (const args of [['sites'], ['a.csv', '--template', 'template']]) {
    for (const format of ['plain', 'json']) {
      const { exitCode, stdout, stderr } = await world.run(
        ...['config-iso', 'build', ...args, '--log-format', format],
      );
      expect(exitCode).toBe(3);
      expect(stdout + stderr).not.toMatch(COMMANDING);
    }
  }
});

it.each(['[', '{"a":'])('a manifest with too many levels of %s is refused', async (open) => {
  const close = open === '[' ? ']' : '}';
  const levels = 50_000;
  write('x.iso', `{"a":${open.repeat(levels)}1${close.repeat(levels)}}`);
  const { exitCode, stderr } = await world.run('config-iso', 'show', 'x.iso');
  expect([exitCode, stderr]).toEqual([5, expect.stringContaining('has more than 64 levels')]);
});
