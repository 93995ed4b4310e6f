import { execFileSync } from 'node:child_process';
import { mkdir, readFile, readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { digestFile } from '../../src/base/files.ts';
import {
  fileText,
  TEST_SSH_KEY,
  writeInstallationConfig,
  type ShownIgnition,
} from '../support/installation-iso.ts';
import { createLiveWorld, type LiveWorld, type Outcome } from '../support/live-iso.ts';
import { requireTool } from '../support/tools.ts';

const hasTools = ['genisoimage', 'isohybrid', 'isoinfo', 'bsdtar', 'ignition-validate', 'openssl']
  .map((tool) => requireTool(tool))
  .every(Boolean);

describe.skipIf(!hasTools)('an installation ISO', () => {
  let world: LiveWorld;
  const at = (name: string): string => join(world.directory, name);

  beforeAll(async () => {
    world = await createLiveWorld();
  });
  afterAll(() => world.close());

  const build = (...args: string[]): Promise<Outcome> =>
    world.run('build', 'installation-iso', '--base-iso', 'test.iso', ...args);

  async function show(iso: string): Promise<ShownIgnition> {
    const { exitCode, stdout, stderr } = await world.run('ignition', 'show', iso);
    expect(exitCode, stderr).toBe(0);
    return JSON.parse(stdout) as ShownIgnition;
  }

  it('is the base ISO with a configuration in its embed area and nothing else changed', async () => {
    await writeInstallationConfig(world.directory, { sshKey: TEST_SSH_KEY });
    const { exitCode, stdout, stderr } = await build();
    expect(exitCode, stderr).toBe(0);
    expect(stdout).toContain('next: sealift ignition show rhcos-ibi.iso');
    expect(stdout).toContain('secrets   pullSecret, sshKey (public key of core)');
    const [made, base] = [await readFile(at('rhcos-ibi.iso')), await readFile(at('test.iso'))];
    const start = offsetOf(at('test.iso'), 'IGNITION.IMG');
    expect(made.length).toBe(base.length);
    made.fill(0, start, start + 262_144);
    expect(made.equals(base)).toBe(true);
  });
});

/** Where isoinfo says that a file begins. */
function offsetOf(iso: string, name: string): number {
  const list = execFileSync('isoinfo', ['-l', '-i', iso], { encoding: 'utf8' });
  const line = list.split('\n').find((each) => each.includes(name)) ?? '';
  return Number(/\[\s*(\d+)/.exec(line)?.[1]) * 2048;
}
