import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { registerCustomize } from '../../../src/cli/medium/customize.ts';
import { registerDiff } from '../../../src/cli/medium/diff.ts';
import { findEmbedArea } from '../../../src/iso/index.ts';
import { openIso } from '../../../src/iso/read/open.ts';
import type { Customisation } from '../../../src/media/customize/read.ts';
import { encodeEmbedded } from '../../../src/media/areas.ts';
import { TEST_SSH_KEY } from '../../support/installation-iso.ts';
import { runCommand } from '../../support/run-command.ts';
import { requireTool } from '../../support/tools.ts';

const DATA = '../shared/data/judged/coreos';

type Recorded = {
  readonly fixture: string;
  readonly customize: readonly {
    readonly 'option': string;
    readonly 'ignition area'?: { readonly base64: string };
  }[];
};

describe.skipIf(!existsSync(DATA) || !requireTool('xz'))('what coreos-installer embedded', () => {
  const fixtures = existsSync(DATA)
    ? (JSON.parse(readFileSync(`${DATA}/fixtures.json`, 'utf8')) as readonly Recorded[])
    : [];
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'sealift-read-'));
  });
  afterAll(() => rm(directory, { recursive: true }));

  /** Writes the fixture and, beside it, a copy with these bytes in its embed area. */
  async function embed(fixture: string, archive: Uint8Array): Promise<void> {
    const packed = `${DATA}/iso/${fixture}.iso.xz`;
    const bytes = execFileSync('xz', ['-dc', packed], { maxBuffer: 1 << 28 });
    const path = join(directory, 'before.iso');
    await writeFile(path, bytes);
    const iso = await openIso(path);
    const { offset } = await findEmbedArea(iso).finally(() => iso.close());
    bytes.set(archive, offset);
    await writeFile(join(directory, 'after.iso'), bytes);
  }

  const findArea = ({ customize }: Recorded, wanted: string): Uint8Array =>
    Buffer.from(
      customize.find(({ option }) => option === wanted)?.['ignition area']?.base64 ?? '',
      'base64',
    );
  const customize = (...args: readonly string[]) =>
    runCommand(registerCustomize, ['customize', 'after.iso', ...args], { cwd: directory });

  async function show(): Promise<Customisation['ignition']> {
    const { stdout } = await customize('--show', '-o', 'json');
    return (JSON.parse(stdout) as Customisation).ignition;
  }

  it('is shown with the configs that it merges', async () => {
    const taken = fixtures.filter((each) => findArea(each, 'live Ignition 3.2.0').length > 0);
    expect(taken).toHaveLength(10); // the synthetic ISO has no area
    for (const recorded of taken) {
      await embed(recorded.fixture, findArea(recorded, 'live Ignition 3.2.0'));
      expect(await show(), recorded.fixture).toMatchObject({
        sshKeys: ['ssh-ed25519 AAAA'],
        others: [],
      });
      await embed(recorded.fixture, findArea(recorded, 'live Ignition 3.4.0'));
      expect((await show()).others, recorded.fixture).toEqual([
        { kind: 'section', name: 'kernelArguments' },
      ]);
    }
  });

  it('loses a key inside a merged config to the key that replaces it, and keeps the config otherwise', async () => {
    const [recorded] = fixtures;
    if (!recorded) throw new Error('there are no fixtures');
    await embed(recorded.fixture, findArea(recorded, 'live Ignition 3.2.0'));
    await customize('--ntp', 'n.example', '--force', '--in-place');
    expect(await show()).toMatchObject({
      sshKeys: ['ssh-ed25519 AAAA'],
      ntpSources: ['n.example'],
    });
    await customize('--ssh-key', TEST_SSH_KEY, '--force', '--in-place');
    expect(await show()).toMatchObject({ sshKeys: [TEST_SSH_KEY], ntpSources: ['n.example'] });
  });

  it('is found by diff, which names each part', async () => {
    const recorded = fixtures.find(({ fixture }) => fixture === 'embed-areas-2023-07.x86_64');
    if (!recorded) throw new Error('there is no such fixture');
    await embed(recorded.fixture, findArea(recorded, 'destination device'));
    const diff = (...args: readonly string[]) =>
      runCommand(registerDiff, ['diff', ...args, '--exit-code'], { cwd: directory });
    const { exitCode, stdout } = await diff('before.iso', 'after.iso');
    expect(exitCode).toBe(8);
    expect(stdout).toMatch(/file +\/etc\/coreos\/installer\.d\/0000-customize\.yaml +added/);
    const same = await diff('after.iso', 'after.iso');
    expect([same.exitCode, same.stdout]).toEqual([
      0,
      expect.stringContaining(
        'no differences in what was compared: names and sizes of files, kernel arguments, the Ignition area\n',
      ),
    ]);
  });

  it('names a merged config whose contents are elsewhere', async () => {
    const [recorded] = fixtures;
    const merge = [{ source: 'https://user:word@example.com/a.ign' }];
    const config = JSON.stringify({ ignition: { version: '3.3.0', config: { merge } } });
    await embed(recorded?.fixture ?? '', encodeEmbedded({ config, keyfiles: [] }));
    const { stdout } = await customize('--show');
    expect(stdout).toContain(
      'not read       https://example.com/a.ign: its contents are elsewhere\n',
    );
    expect(stdout).not.toContain('word');
  });
});
