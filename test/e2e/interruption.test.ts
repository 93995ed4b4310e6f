import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SourceRegistry } from '../../demo/source-registry.ts';
import { digestFile, hasFile, readFileIfPresent } from '../../src/base/disk/files.ts';
import { startSealift, type Child } from '../support/child.ts';
import { type SlowRelease, startSlowRelease } from '../support/slow-release.ts';

const MIB = 1024 * 1024;
const BLOBS = 10;
const LANES = 3;

describe('an interrupted build', () => {
  let release: SlowRelease;
  let directory: string;
  let registry: SourceRegistry;
  let whole: string;

  beforeAll(async () => {
    release = await startSlowRelease({ blobs: BLOBS, blobSize: 4 * MIB, lanes: LANES });
    ({ directory, registry } = release);
    const { code, stderr } = await build('whole.iso').ended;
    expect(code, stderr).toBe(0);
    whole = await digestFile(join(directory, 'whole.iso'));
  });
  afterAll(() => release.close());

  const build = (output: string): Child =>
    startSealift(['build', '--output', output], { cwd: directory });

  /** Waits until the registry has served so many bytes more. */
  async function served(bytes: number): Promise<void> {
    const start = registry.bytesServed();
    while (registry.bytesServed() - start < bytes) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  /** Waits until the journal tells of a megabyte in one piece, which the next run can keep. */
  async function noted(output: string): Promise<void> {
    const journal = join(directory, `${output}.partial.journal`);
    while (!/^p \d+ \d{7,} /m.test((await readFileIfPresent(journal))?.toString() ?? '')) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  it('continues after SIGKILL at any moment, and the ISO is the same', async () => {
    const kills = [1, 3 * MIB, 7 * MIB, 12 * MIB];
    for (const bytes of kills) {
      const child = build('killed.iso');
      await served(bytes);
      if (bytes === kills.at(-1)) await noted('killed.iso');
      child.process.kill('SIGKILL');
      await child.ended;
      expect(await hasFile(join(directory, 'killed.iso'))).toBe(false);
    }
    const before = registry.bytesServed();
    const { code, stderr, stdout } = await build('killed.iso').ended;
    expect(code, stderr).toBe(0);
    expect(stdout).toMatch(/[1-9][\d.]* MiB reused/);
    expect(await digestFile(join(directory, 'killed.iso'))).toBe(whole);
    const sent = registry.bytesServed() - before;
    const report = await readFile(join(directory, 'killed.iso.report.json'), 'utf8');
    const { bytes } = JSON.parse(report) as {
      readonly bytes: Record<'fetched' | 'reused' | 'written', number>;
    };
    const { size } = await stat(join(directory, 'killed.iso'));
    // Padding between the areas may stay a hole.
    const holes = size - bytes.reused - bytes.written;
    expect([holes >= 0, holes < 2 * MIB]).toEqual([true, true]);
    expect(bytes.fetched).toBeLessThan(bytes.written);
    expect(sent).toBe(bytes.fetched);
  });

  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('keeps its downloads on %s and ends with %i', async (signal, exitCode) => {
    const child = build(`${signal}.iso`);
    await noted(`${signal}.iso`);
    child.process.kill(signal);
    const { code, stderr } = await child.ended;
    expect(code, stderr).toBe(exitCode);
    expect(stderr).toMatch(
      /\n {2}hint: \d+\.\d MiB of \d+\.\d MiB are written; run the same command to continue\n$/,
    );
    const partial = await stat(join(directory, `${signal}.iso.partial`));
    expect(partial.blocks).toBeGreaterThan(0);
    const { stdout } = await build(`${signal}.iso`).ended;
    expect(stdout).toMatch(/[1-9][\d.]* MiB reused/);
    expect(await digestFile(join(directory, `${signal}.iso`))).toBe(whole);
  });

  it('is not disturbed by a second build of the same output, which names the first', async () => {
    const first = build('contended.iso');
    await served(4 * MIB);
    first.process.kill('SIGSTOP');
    const second = await build('contended.iso').ended;
    expect(second.code).toBe(7);
    expect(second.stderr).toContain(`process ${first.process.pid ?? 0} on host `);
    first.process.kill('SIGCONT');
    expect((await first.ended).code).toBe(0);
    expect(await digestFile(join(directory, 'contended.iso'))).toBe(whole);
  });

  it('starts over if the inputs changed in between', async () => {
    const child = build('changed.iso');
    await served(8 * MIB);
    child.process.kill('SIGKILL');
    await child.ended;
    const config = join(directory, 'appliance-config.yaml');
    const text = await readFile(config, 'utf8');
    await writeFile(config, text.replace('build:', 'enableInteractiveFlow: true\nbuild:'));
    const { code, stderr } = await build('changed.iso').ended;
    await writeFile(config, text);
    expect(code, stderr).toBe(0);
    expect(stderr).toContain('partial output is from different inputs');
    expect(await digestFile(join(directory, 'changed.iso'))).not.toBe(whole);
  });
});
