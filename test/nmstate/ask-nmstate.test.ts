import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { findNetworkTool, type NetworkTool } from '../../src/nmstate/tool.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sealift-nmstatectl-'));
});
afterEach(() => rm(directory, { recursive: true }));

const { signal } = new AbortController();

/** Stands in for nmstatectl, with what it does when it is asked for connections. */
async function install(...gc: readonly string[]): Promise<NetworkTool | undefined> {
  const script = [
    '#!/bin/sh',
    'if [ "$1" = --version ]; then echo 2.2.0; exit 0; fi',
    `[ "$1" = gc ] || exit 9`,
    ...gc,
    '',
  ];
  await writeFile(join(directory, 'nmstatectl'), script.join('\n'), { mode: 0o755 });
  return findNetworkTool({ signal, env: { PATH: `${directory}:/usr/bin:/bin` } });
}

describe('nmstatectl', () => {
  it('is not run if it is not installed', async () => {
    expect(await findNetworkTool({ signal, env: {} })).toBeUndefined();
    expect(await findNetworkTool({ signal, env: { PATH: directory } })).toBeUndefined();
  });

  it('has no objection to a configuration that it makes profiles of', async () => {
    const nmstate = await install(
      ...[
        'grep -q "name: eth0" "$2" || exit 8',
        "printf 'NetworkManager:\\n- - eth0.nmconnection\\n  - text\\n'",
      ],
    );
    expect(await nmstate?.makeProfiles('interfaces:\n- name: eth0\n', signal)).toEqual({
      profiles: [{ name: 'eth0.nmconnection', content: 'text' }],
    });
  });

  it.each(["''", "'---\\n{}\\n'", "'NetworkManager: []\\n'"])(
    'is reported to make no profiles if it prints %s',
    async (text) => {
      const nmstate = await install(`printf -- ${text}`);
      expect(await nmstate?.makeProfiles('{}\n', signal)).toEqual({
        problem: 'nmstate generated an empty NetworkManager config file content',
      });
    },
  );

  it('makes the profiles that it prints', async () => {
    const nmstate = await install("printf 'NetworkManager:\\n- - a.nmconnection\\n  - text\\n'");
    expect(await nmstate?.makeProfiles('{}\n', signal)).toEqual({
      profiles: [{ name: 'a.nmconnection', content: 'text' }],
    });
  });

  it.each([
    ['nothing', "'NetworkManager: []'", /empty NetworkManager/],
    ['a name that leads elsewhere', "'NetworkManager: [[../a.nmconnection, b]]'", /without a name/],
    ['no content', "'NetworkManager: [[a.nmconnection]]'", /without a name or content/],
    ['what is not YAML', "'[['", /did not print YAML/],
  ])('is refused as a source of profiles if it prints %s', async (_, text, message) => {
    const nmstate = await install(`printf -- ${text}`);
    expect(await nmstate?.makeProfiles('{}\n', signal)).toMatchObject({
      problem: expect.stringMatching(message) as unknown,
    });
  });

  it('is quoted after the last "Error:"', async () => {
    const nmstate = await install(
      'echo "secret Error: InvalidArgument: Error: no such type" >&2; exit 1',
    );
    expect(await nmstate?.makeProfiles('{}\n', signal)).toEqual({
      problem: "failed to execute 'nmstatectl gc', error: no such type",
    });
  });

  it('is quoted on one line, without control characters', async () => {
    const nmstate = await install("printf 'Error: a\\033[2J\\r\\nb' >&2; exit 1");
    expect(await nmstate?.makeProfiles('{}\n', signal)).toEqual({
      problem: "failed to execute 'nmstatectl gc', error: a [2J b",
    });
  });

  it('leaves no file behind', async () => {
    const nmstate = await install('exit 1');
    vi.stubEnv('TMPDIR', directory);
    await nmstate?.makeProfiles('{}\n', signal);
    vi.unstubAllEnvs();
    expect(await readdir(directory)).toEqual(['nmstatectl']);
  });
});
