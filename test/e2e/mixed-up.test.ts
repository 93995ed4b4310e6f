import { copyFile, mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runProgram } from '../../src/cli/program.ts';
import { formatDelta, readDeltaHead } from '../../src/media/delta/file.ts';
import type { DeltaDescription } from '../../src/media/delta/describe.ts';
import { InterruptedError } from '../../src/base/errors.ts';
import { withoutUndefined } from '../../src/base/lists.ts';
import { useImage } from '../../src/media/open.ts';
import { writeInstallationConfig } from '../support/installation-iso.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { buildTwoNights, expectDone } from '../support/two-nights.ts';

let world: LiveWorld;

const at = (name: string): string => join(world.directory, name);

const NAME = /live-iso 4\.21\.3 x86_64 of \d{4}-\d\d-\d\d/.source;

/** Monday's and tuesday's ISO, the delta between them, one of another release, and one without names. */
beforeAll(async () => {
  world = await createLiveWorld();
  await buildTwoNights(world, { replaces: true });
  await expectDone(world, 'delta', 'monday.iso', 'tuesday.iso', '--output', 'night.delta');
  await expectDone(world, 'delta', 'tuesday.iso', 'monday.iso', '--output', 'back.delta');
  const cut = ['--max-part-size', '64KiB', '--output', 'cut.delta'];
  await expectDone(world, 'delta', 'monday.iso', 'tuesday.iso', ...cut);
  const third = ['--output', 'third.iso', '--base-iso', 'test.iso', '--ignition-area', '2MiB'];
  await expectDone(world, 'build', ...third);
  await rename('other.delta', ({ from, to }) => ({ from: { ...from, version: '4.21.2' }, to }));
  await rename('earlier.delta', () => undefined);
});
afterAll(() => world.close());

type Names = NonNullable<Awaited<ReturnType<typeof readDeltaHead>>['names']>;

/** Copies the delta with other names of its ISOs. */
async function rename(name: string, edit: (names: Names) => Names | undefined): Promise<void> {
  const { names, start, body, ...head } = await useImage(at('back.delta'), readDeltaHead);
  const bytes = await readFile(at('back.delta'));
  const edited = names && edit(names);
  const first = formatDelta({
    ...head,
    ...(edited && { names: edited, ...withoutUndefined({ body }) }),
  });
  await writeFile(at(name), Buffer.concat([first, bytes.subarray(start)]));
}

/** The error that a command ends with, which must write nothing. */
async function readError(...args: readonly string[]): Promise<string> {
  const { exitCode, stderr } = await world.run(...args);
  expect([exitCode, stderr]).toEqual([5, expect.stringMatching(/^error: |\nerror: /)]);
  await expect(stat(at('new.iso'))).rejects.toThrow('ENOENT');
  return stderr.slice(stderr.indexOf('error: ')).replaceAll(`${world.directory}/`, '');
}

describe('a delta that is given for another ISO', () => {
  const apply = (...args: readonly string[]): Promise<string> =>
    readError('apply', ...args, '--output', 'new.iso');

  test('is told from it by product, version and day', async () => {
    expect(await apply('third.iso', 'other.delta')).toMatch(
      RegExp(
        `: the delta is for live-iso 4\\.21\\.2 x86_64 of [\\d-]+, but third\\.iso is ${NAME} \\[delta\\.other-iso\\]\n` +
          ` {2}expected: live-iso 4\\.21\\.2 x86_64 of [\\d-]+, sha256:[0-9a-f]{64}\n` +
          ` {2}found: {4}${NAME}, sha256:[0-9a-f]{64}\n`,
      ),
    );
  });

  test('is told from it by digest if the names are the same, or not known', async () => {
    expect(await apply('third.iso', 'night.delta')).toMatch(
      RegExp(`the delta is for ${NAME}, but third\\.iso is ${NAME} with other contents `),
    );
    expect(await apply('third.iso', 'earlier.delta')).toMatch(
      RegExp(`the delta was not made for third\\.iso, which is ${NAME} `),
    );
  });

  test('is told from an ISO that has a proof instead of an index', async () => {
    await writeInstallationConfig(world.directory);
    const product = ['installation-iso', '--base-iso', 'test.iso', '--output', 'ibi.iso'];
    await expectDone(world, 'build', ...product);
    for (const error of [
      await apply('ibi.iso', 'night.delta'),
      await readError('delta', 'monday.iso', 'ibi.iso', '--output', 'new.iso'),
    ]) {
      expect(error).toMatch(
        /ibi\.iso is the installation-iso of \S+, without an index \[delta\.no-index\]/,
      );
    }
  });

  test('is refused for the ISO that it makes', async () => {
    expect(await apply('tuesday.iso', 'night.delta')).toMatch(
      RegExp(
        `tuesday\\.iso is already the ISO that the delta makes: ${NAME} \\[delta\\.other-iso\\]`,
      ),
    );
  });
});

describe('an ISO and a delta that were mixed up', () => {
  test('are swapped arguments of apply', async () => {
    for (const place of [['--output', 'new.iso'], ['--in-place']]) {
      expect(await readError('apply', 'night.delta', 'monday.iso', ...place)).toMatch(
        RegExp(
          `^error: the arguments are swapped: night\\.delta is a delta from ${NAME} to ${NAME}, ` +
            `and monday\\.iso is the ISO ${NAME} \\[iso\\.not-iso9660\\]`,
        ),
      );
    }
  });

  test('are named when two ISOs are given to apply', async () => {
    expect(await readError('apply', 'monday.iso', 'tuesday.iso', '--in-place')).toMatch(
      RegExp(`^error: tuesday\\.iso is the ISO ${NAME}, not a delta \\[delta\\.malformed\\]`),
    );
  });

  test.each([
    { args: ['ls', 'night.delta'] },
    { args: ['cat', 'night.delta', '/x'] },
    { args: ['ignition', 'show', 'night.delta'] },
    { args: ['customize', 'night.delta', '--show'] },
    { args: ['customize', 'night.delta', '--in-place', '--kargs-append', 'x=1'] },
    { args: ['customize', 'night.delta', '--output', 'new.iso', '--kargs-append', 'x=1'] },
    { args: ['diff', 'monday.iso', 'night.delta'] },
    { args: ['delta', 'monday.iso', 'night.delta', '--output', 'new.iso'] },
    { args: ['extract', 'rootfs', 'night.delta', '--out', 'parts'] },
    { args: ['push', 'night.delta', 'oci://127.0.0.1:1/a:b'] },
    { args: ['why', 'etcd', '--iso', 'night.delta'] },
  ])('are named by $args', async ({ args }) => {
    expect(await readError(...args)).toMatch(
      RegExp(
        `night\\.delta is a delta from ${NAME} to ${NAME}, not an ISO \\[iso\\.not-iso9660\\]`,
      ),
    );
  });

  test('are named when a part of a delta is given as an ISO', async () => {
    expect(await readError('ls', 'cut.delta.1')).toMatch(
      /cut\.delta\.1 is part 1 of \d of a delta of [\d.]+ \wiB, not an ISO/,
    );
  });
});

describe('verify', () => {
  test.each(['night.delta', 'cut.delta.1', 'cut.delta.parity'])(
    'says whether %s is whole',
    async (name) => {
      const { stdout } = await expectDone(world, 'verify', name);
      expect(stdout).toMatch(RegExp(`^${name} is whole: .* of a delta|a delta from ${NAME} to`));
      expect(stdout).toMatch(/; every byte was compared\n$/);
      const bytes = await readFile(at(name));
      bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
      await writeFile(at('bad.delta'), bytes);
      const json = await world.run('verify', 'bad.delta', '-o', 'json');
      expect([json.exitCode, JSON.parse(json.stdout)]).toMatchObject([8, { state: 'damaged' }]);
      const { stdout: text } = await world.run('verify', 'bad.delta');
      expect(text).toMatch(/\nbad\.delta is damaged: 1 problem\n$/);
    },
  );

  test('cannot judge a delta of an earlier version', async () => {
    const { exitCode, stdout, stderr } = await world.run('verify', 'earlier.delta');
    expect([exitCode, stdout]).toEqual([
      10,
      expect.stringMatching(
        /^not compared: all .*: it has no index and no proof\nearlier\.delta is not provable: a delta from sha256/,
      ),
    ]);
    expect(stderr).toContain('--sha256');
  });
});

describe('inspect', () => {
  const inspect = async (name: string): Promise<DeltaDescription> =>
    JSON.parse((await expectDone(world, 'inspect', name, '-o', 'json')).stdout) as DeltaDescription;

  test('says from what to what a delta is', async () => {
    const iso = { product: 'live-iso', version: '4.21.3', architecture: 'x86_64' };
    const { size } = await stat(at('tuesday.iso'));
    expect(await inspect('night.delta')).toMatchObject({
      kind: 'delta',
      from: { ...iso, day: expect.any(String) as string },
      to: { ...iso, size },
    });
    const { stdout } = await expectDone(world, 'inspect', 'night.delta');
    expect(stdout).toMatch(RegExp(`^from {11}${NAME}\n  index {8}sha256:`, 'm'));
    expect(stdout).toMatch(RegExp(`^to {13}${NAME}, [\\d.]+ MiB\n`, 'm'));
  });

  test('says the digests of a delta of an earlier version', async () => {
    const { kind, ...rest } = await inspect('earlier.delta');
    expect(kind).toBe('delta');
    expect(rest).toMatchObject({ from: { digest: expect.stringMatching(/^sha256:/) as string } });
    const { stdout } = await expectDone(world, 'inspect', 'earlier.delta');
    expect(stdout).toMatch(/^from {11}sha256:[0-9a-f]{64}$/m);
  });

  test('says which part of a delta a file is', async () => {
    expect(await inspect('cut.delta.1')).toMatchObject({ kind: 'delta-part', number: 1 });
    const parity = await inspect('cut.delta.parity');
    expect(parity).toMatchObject({ kind: 'delta-part' });
    expect(parity).not.toHaveProperty('number');
  });
});

test('a folder with the configuration of another product is named with it', async () => {
  for (const [name, args, command] of [
    ['installation', ['build'], 'sealift build installation-iso'],
    ['live', ['build', 'installation-iso', '--base-iso', 'test.iso'], 'sealift build'],
    ['site', ['plan'], 'sealift config-iso build'],
  ] as const) {
    await mkdir(at(name), { recursive: true });
    const file = {
      installation: 'image-based-installation-config',
      live: 'appliance-config',
      site: 'image-based-config',
    }[name];
    await writeFile(at(`${name}/${file}.yaml`), '');
    const missing = name === 'live' ? 'image-based-installation-config' : 'appliance-config';
    const { exitCode, stderr } = await world.run(...args, `${name}/${missing}.yaml`);
    expect([exitCode, stderr]).toEqual([
      3,
      expect.stringContaining(`hint: its folder has ${file}.yaml, which "${command}" reads`),
    ]);
  }
});

test('a checksum that was copied with its ISO is named by the ISO that it is of', async () => {
  await copyFile(at('monday.iso'), at('copy.iso'));
  await copyFile(at('monday.iso.sha256'), at('copy.iso.sha256'));
  const { exitCode, stderr } = await world.run('build', '--output', 'copy.iso');
  expect([exitCode, stderr]).toEqual([
    2,
    expect.stringMatching(
      /copy\.iso\.sha256" exists .*\n.*\n {2}found: {4}the checksum of "monday\.iso"\n/,
    ),
  ]);
});

describe('a command that is interrupted', () => {
  const KEPT = 'run the same command to continue';
  const BEGUN = 'what was written is not kept; run the same command to begin again';

  test.each([
    { args: ['customize', 'monday.iso', '--ntp', 'n.example', '--output', 'new.iso'], says: BEGUN },
    { args: ['extract', 'rootfs', 'test.iso', '--out', 'parts'], says: BEGUN },
    { args: ['repair', 'copy.iso', '--from', 'monday.iso'], says: `0 B are repaired; ${KEPT}` },
    { args: ['delta', 'monday.iso', 'tuesday.iso', '--output', 'x.delta'], says: KEPT },
    { args: ['apply', 'monday.iso', 'night.delta', '--output', 'new.iso'], says: KEPT },
  ])('says how it continues: $args.0', async ({ args, says }) => {
    await copyFile(at('monday.iso'), at('copy.iso'));
    const controller = new AbortController();
    const host = world.host(controller.signal);
    const lines: string[] = [];
    host.stderr.on('data', (line: Buffer) => lines.push(line.toString()));
    host.stderr.write = new Proxy(host.stderr.write.bind(host.stderr), {
      apply(write, _self, [line]: [string]) {
        if (line.includes(': started')) controller.abort(new InterruptedError('SIGINT'));
        return write(line);
      },
    });
    expect(await runProgram(args, host)).toBe(130);
    const text = lines.join('');
    expect(text).toContain('error: interrupted by SIGINT [interrupted]');
    expect(text).toContain(`hint: ${says}`);
    await expect(stat(at('new.iso'))).rejects.toThrow('ENOENT');
  });
});
