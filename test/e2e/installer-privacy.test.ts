import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startSealift } from '../support/child.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { requireTool } from '../support/tools.ts';

const hasTools = ['genisoimage', 'isohybrid'].map((tool) => requireTool(tool)).every(Boolean);
const SECRETS = ['aG9zdHM6dG9wLXdvcmQ=', 'dXNlcjpzZWNyZXQtd29yZA=='];

describe.skipIf(!hasTools)('a build that runs the installer', () => {
  let world: LiveWorld;
  const at = (name: string): string => join(world.directory, name);
  beforeAll(async () => {
    world = await createLiveWorld();
    await writeFile(at('hosts.json'), `{"auths":{"hosts.example":{"auth":"${SECRETS[0] ?? ''}"}}}`);
    await world.writeConfig(
      ...['  installer: stand-in', '  embed:', '    pullSecret: file:hosts.json'],
    );
  }, 60_000);
  afterAll(() => world.close());

  it('shows no secret in the process list, and leaves no input of the installer behind', async () => {
    const script = [
      '#!/bin/sh',
      'while [ $# -gt 0 ]; do [ "$1" = --dir ] && dir=$2; shift; done',
      `cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' > ${at('seen')}`,
      `stat -c '%a %n' "$dir" "$dir"/*/* > ${at('modes')}`,
      `echo '{"ignition":{"version":"3.2.0"}}' > "$dir/unconfigured-agent.ign"`,
    ];
    await writeFile(at('stand-in'), script.join('\n'), { mode: 0o755 });
    const child = startSealift(['build', '--ignition', 'installer', '--output', 'x.iso'], {
      cwd: world.directory,
    });
    const { code, stderr, stdout } = await child.ended;
    const seen = await readFile(at('seen'), 'utf8');
    expect(seen, stderr).toContain('--ignition installer');
    for (const secret of SECRETS) {
      expect(seen).not.toContain(secret);
      expect(stderr + stdout).not.toContain(secret);
    }
    const modes = await readFile(at('modes'), 'utf8');
    expect(modes.trim().split('\n')[0]).toMatch(/^700 /);
    expect(modes).toMatch(/^600 .*pull-secret\.yaml$/m);
    const left = await readdir(at('.sealift'));
    expect(left.filter((name) => name.startsWith('installer-'))).toEqual([]);
    expect(code, stderr).toBe(0);
  });
});
