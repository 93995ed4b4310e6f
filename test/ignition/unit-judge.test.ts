import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Unit } from '../../src/ignition/index.ts';
import { findUnitJudge } from '../../src/ignition/unit-judge.ts';
import { findUnitFaults } from '../../src/ignition/units.ts';
import { requireTool } from '../support/tools.ts';

const { signal } = new AbortController();
const RUN = 'ExecStart=/bin/true\n';
const SERVICE = `[Service]\n${RUN}`;

const configOf = (...units: readonly Unit[]) => ({
  ignition: { version: '3.2.0' },
  systemd: { units },
});

async function refuse(...units: readonly Unit[]): Promise<readonly string[]> {
  const judge = await findUnitJudge({ env: process.env, signal });
  const faults = await judge?.judge(configOf(...units), signal);
  return (faults ?? []).map(({ unit, problem }) => `${unit}: ${problem}`);
}

describe.skipIf(!requireTool('systemd-analyze'))('systemd, asked about units', () => {
  it('has a name and a version', async () => {
    const judge = await findUnitJudge({ env: process.env, signal });
    expect(judge?.name).toMatch(/^systemd-analyze \d+$/);
  });

  it('takes units that need other units and programs which are not here', async () => {
    const unit =
      '[Unit]\nRequires=gone.service\nAfter=gone.service\n[Service]\nExecStart=/opt/gone\n';
    expect(
      await refuse(
        { name: 'a.service', contents: unit },
        { name: 'b@.service', contents: SERVICE },
        { name: 'c.path', contents: '[Path]\nPathChanged=/etc/c\n' },
        { name: 'NetworkManager.service', dropins: [{ name: '1.conf', contents: SERVICE }] },
      ),
    ).toEqual([]);
  });

  it('takes units and drop-ins that have one name, or the name of a folder of drop-ins', async () => {
    const dropin = { name: '1.conf', contents: SERVICE };
    expect(
      await refuse(
        { name: 'a.service', contents: 'rubbish' },
        { name: 'a.service', contents: '[Service]\nType=oneshot\n', dropins: [dropin, dropin] },
        { name: 'a.service.d', contents: SERVICE },
        { name: `${'a'.repeat(300)}.service`, contents: SERVICE },
      ),
    ).toEqual([]);
  });

  it('takes more units than one command may name', async () => {
    const units = Array.from({ length: 501 }, (_, at) => ({
      name: `u${at}.service`,
      contents: SERVICE,
    }));
    const wrong = { name: 'wrong.service', contents: '[Service]\nExecStart=bin/true\n' };
    expect(await refuse(...units, wrong)).toEqual([expect.stringMatching(/^wrong\.service: /)]);
  });

  it('says which units it refuses, and why', async () => {
    expect(
      await refuse(
        { name: 'two.service', contents: `${SERVICE}${RUN}` },
        { name: 'good.service', contents: SERVICE },
        { name: 'any@.service', contents: '[Service]\nExecStart=bin/true\n' },
        { name: 'end.service', contents: `[Service\n${RUN}` },
        { name: 'a.timer', contents: '[Timer]\n' },
        { name: 'where.service', contents: `${SERVICE}WorkingDirectory=relative\n` },
        {
          name: 'more.service',
          contents: SERVICE,
          dropins: [{ name: '10.conf', contents: `[Service]\n${RUN}` }],
        },
      ),
    ).toEqual([
      expect.stringMatching(/^two\.service: systemd refuses it: .*more than one ExecStart=/),
      expect.stringMatching(/^any@\.service: systemd refuses it: .*absolute path: bin\/true/),
      expect.stringMatching(/^end\.service: systemd refuses it: .*section header/),
      expect.stringMatching(/^a\.timer: systemd refuses it: .*lacks value/),
      expect.stringMatching(/^where\.service: systemd refuses it: .*not absolute: relative/),
      expect.stringMatching(/^more\.service: systemd refuses it: .*more than one ExecStart=/),
    ]);
  });

  it('is not asked about units that have no file of their own, nor about names that lead elsewhere', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sealift-units-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const contents = '[Service]\n';
    expect(
      await refuse(
        { name: `../${folder}/x.service`, contents },
        { name: 'x.service', contents, mask: true },
        { name: 'y.service', contents: '' },
      ),
    ).toEqual([]);
    expect(await readdir(folder)).toEqual([]);
  });

  /** Our own rules stand in where systemd is not installed: they may know less, and are never wrong. */
  it.each([
    ['a quoted program', '[Service]\nExecStart="/bin/true" x\n'],
    ['a section with spaces before it', ' [Service]\n ExecStart=/bin/true\n'],
    ['an action instead of a command', '[Unit]\nSuccessAction=reboot\n[Service]\n'],
    ['a command that only stops', '[Service]\nRemainAfterExit=yes\nExecStop=/bin/true\n'],
    ['a stop without an end', '[Service]\nExecStop=/bin/true\n'],
    ['a command that is taken back', `${SERVICE}ExecStart=\n`],
    ['a command before the first section', RUN],
    ['a command in another section', `[Unit]\n${RUN}`],
    ['only a comment', `[Service]\n#${RUN}`],
    ['a comment inside a command', '[Service]\nExecStart=/bin/true \\\n# ; bin/x\n  --now\n'],
    ['two commands on a line', '[Service]\nType=oneshot\nExecStart=/bin/true ; bin/false\n'],
    ['a word that looks like the next command', '[Service]\nExecStart=/bin/sh -c "a ; b/c"\n'],
    ['carriage returns', `[Service]\r\n${RUN.trim()}\r\n`],
  ])('agrees with our own rules about %s', async (_, contents) => {
    const own = findUnitFaults(configOf({ name: 'a.service', contents }));
    const refused = await refuse({ name: 'a.service', contents });
    expect([own.length > 0, refused]).toEqual([refused.length > 0, refused]);
  });
});

describe('systemd that is not installed', () => {
  it('is not found without a PATH, or where PATH does not have it', async () => {
    expect(await findUnitJudge({ env: {}, signal })).toBeUndefined();
    expect(await findUnitJudge({ env: { PATH: '/nowhere' }, signal })).toBeUndefined();
  });
});
