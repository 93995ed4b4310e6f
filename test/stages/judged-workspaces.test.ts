import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runProcess } from '../../src/base/process.ts';
import { runProgram } from '../../src/cli/program.ts';
import { requireTool } from '../support/tools.ts';

/** Workspaces that a real oc-mirror wrote, run after run. */
const RECORDED = '../shared/data/judged/oc-mirror';

/** Images that oc-mirror itself reported as missing. */
const MISSING = [
  'mtv-operator-bundle@sha256:03bece32dfc239692948fe3631ba7ccda3ce3927121fe9555ef7159bb1b6568e',
  'mtv-virt-v2v-rhel10@sha256:c8704cd1d1aa02aef900bcee8403107f457c15156081e451ec5a92975a899f3a',
];

describe.skipIf(!existsSync(RECORDED))('a workspace of the real oc-mirror', () => {
  let directory: string;
  beforeAll(async () => {
    requireTool('zstd');
    directory = await mkdtemp(join(tmpdir(), 'sealift-workspaces-'));
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  /** Plans a live ISO from a recorded workspace, without a network. */
  async function plan(name: string, ...args: string[]) {
    const cwd = await mkdtemp(join(directory, `${name}-`));
    await runProcess('tar', ['--zstd', '-xf', resolve(RECORDED, `${name}.tar.zst`), '-C', cwd]);
    const lines = [
      'apiVersion: v1beta1\nkind: ApplianceConfig\nocpRelease:\n  version: "4.21.7"\nmirrorPath: mirror',
      `build:\n  signatureKeys: ${resolve(RECORDED, 'release-key.asc')}\n`,
    ];
    await writeFile(join(cwd, 'appliance-config.yaml'), lines.join('\n'));
    const [stdout, stderr] = [new PassThrough(), new PassThrough()];
    const exitCode = await runProgram(['plan', 'live-iso', ...args], {
      ...{ stdout, stderr, cwd, isTTY: false, env: { HOME: cwd }, now: Date.now },
      signal: new AbortController().signal,
    });
    return { exitCode, stdout: String(stdout.read() ?? ''), stderr: String(stderr.read() ?? '') };
  }

  it.each(['signed', 'signed-again', 'two-runs', 'namespace'])('is planned: %s', async (name) => {
    const { exitCode, stdout, stderr } = await plan(name);
    expect(stderr).not.toContain('mirror.openshift.com');
    expect(exitCode, stderr).toBe(0);
    expect(stdout).toContain('by key 4A594D0EEA8440E5E72B3004C35BF7A75BA40D17');
  });

  it('is refused with every missing image named, and what oc-mirror said of it', async () => {
    const refused = await plan('partial');
    expect(refused.exitCode).toBe(5);
    expect(refused.stderr).toContain('[mirror.incomplete]');
    for (const image of MISSING) expect(refused.stderr).toContain(image);
    expect(refused.stderr).toContain('because one of its related images failed to mirror');
    const allowed = await plan('partial', '--allow-incomplete');
    expect(allowed.exitCode).toBe(0);
    for (const image of MISSING) expect(allowed.stderr).toContain(image);
  });
});
