import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { registerCustomize } from '../../../src/cli/medium/customize.ts';
import { encodeInitrd } from '../../../src/ignition/initrd.ts';
import { makeCoreosIso } from '../../support/iso.ts';
import { runCommand } from '../../support/run-command.ts';
import { requireTool } from '../../support/tools.ts';

const hasTools = ['genisoimage', 'isohybrid', 'mformat'].map(requireTool).every(Boolean);

const AREA = 262_144;
const area = (bytes: Uint8Array): Buffer =>
  Buffer.concat([bytes, Buffer.alloc(AREA - bytes.length)]);
const config = (text: string): Uint8Array =>
  encodeInitrd([{ name: 'config.ign', mode: 0o100600, data: Buffer.from(text) }]);

describe.skipIf(!hasTools)('customising an ISO that holds something else', () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'sealift-kargs-'));
  });
  afterEach(() => rm(directory, { recursive: true }));

  const customize = (...args: readonly string[]) =>
    runCommand(registerCustomize, ['customize', 'test.iso', ...args], { cwd: directory });
  const make = (bytes: Uint8Array): Promise<string> =>
    makeCoreosIso(directory, { files: { 'images/ignition.img': area(bytes) } });

  it.each([
    ['text that is not an archive', Buffer.from('garbage')],
    ['a config of a later specification', config('{"ignition":{"version":"4.0.0"}}')],
    ['an archive that is cut off', config('{"ignition":{"version":"3.2.0"}}').subarray(0, 40)],
  ])('changes kernel arguments beside %s, and leaves that as it is', async (_what, bytes) => {
    const path = await make(bytes);
    const before = await readFile(path);
    const flags = ['--kargs-append', 'a=b', '--kargs-replace', 'a=b=c', '--in-place'];
    expect(await customize(...flags)).toMatchObject({ exitCode: 0 });
    const after = await readFile(path);
    const at = before.indexOf(bytes);
    expect(after.subarray(at, at + AREA).equals(before.subarray(at, at + AREA))).toBe(true);
    expect(after.toString('latin1').split('platform.id=metal a=c\n')).toHaveLength(3);
  });

  it('warns of arguments that are not there to be deleted or replaced', async () => {
    await make(new Uint8Array());
    const flags = ['--kargs-delete', 'x', '--kargs-replace', 'y=1=2', '--in-place'];
    const { exitCode, stderr } = await customize(...flags);
    expect(exitCode).toBe(0);
    expect(stderr.match(/kernel argument \S+ is not on the ISO/g)).toEqual([
      'kernel argument x is not on the ISO',
      'kernel argument y=1 is not on the ISO',
    ]);
  });

  it('shows, changes and keeps a config of specification 3.6 with members that it does not know', async () => {
    const text =
      '{"ignition":{"version":"3.6.0","later":{"a":1}},"kernelArguments":{"shouldExist":["x"]}}';
    await make(config(text));
    await writeFile(join(directory, 'eth0.nmconnection'), '[connection]\nid=eth0\n');
    const flags = ['--force', '--ntp', 'ntp.example', '--network-keyfile', 'eth0.nmconnection'];
    expect(await customize(...flags, '--in-place')).toMatchObject({ exitCode: 0 });
    const { stdout } = await customize('--show', '-o', 'json');
    expect(JSON.parse(stdout)).toMatchObject({
      ignition: {
        ntpSources: ['ntp.example'],
        networkFiles: ['eth0.nmconnection'],
        others: expect.arrayContaining([
          { kind: 'section', name: 'ignition.later' },
          { kind: 'section', name: 'kernelArguments' },
        ]) as unknown,
      },
    });
  });
});
