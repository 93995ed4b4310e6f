import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { digestOf, hexOf } from '../../src/base/digest.ts';
import { digestFile, hasFile } from '../../src/base/disk/files.ts';
import { parseIgnition } from '../../src/ignition/config.ts';
import { openIso } from '../../src/iso/read/open.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { findFile, readContents } from '../support/node-configs.ts';
import { requireTool } from '../support/tools.ts';

const COPY_SCRIPT = '/usr/local/bin/copy-registry-data.sh';

/** `find -type f | xargs sha256sum | sort | sha256sum` in the registry of an ISO. */
async function sumRegistry(path: string): Promise<string> {
  const image = await openIso(path);
  const lines: string[] = [];
  try {
    for await (const { path: name, node } of image.walk()) {
      if (node.kind !== 'file' || !name.startsWith('/registry/')) continue;
      const bytes = await buffer(image.stream(node));
      lines.push(`${hexOf(digestOf(bytes))}  ${name.slice('/registry/'.length)}\n`);
    }
  } finally {
    await image.close();
  }
  return hexOf(digestOf(lines.sort().join('')));
}

describe.skipIf(!requireTool('genisoimage') || !requireTool('isohybrid'))('a live ISO', () => {
  let world: LiveWorld;
  beforeAll(async () => {
    world = await createLiveWorld();
  });
  afterAll(() => world.close());

  it('has exactly the planned size, and the same bytes when it is built again', async () => {
    const { directory, run } = world;
    await world.writeConfig();
    const plan = await run('plan', '-o', 'json');
    expect(plan.stderr).not.toContain('secret-word');
    expect(plan.exitCode, plan.stderr).toBe(0);
    const planned = JSON.parse(plan.stdout) as { isoSize: number; bytesToFetch: number };
    const first = await run('build', '--output', 'one.iso');
    expect(first.exitCode, first.stderr).toBe(0);
    const iso = await readFile(join(directory, 'one.iso'));
    expect(iso.length).toBe(planned.isoSize);
    expect(first.stdout).toContain('next: sealift verify one.iso');
    const second = await run('build', 'live-iso', '--output', 'two/two.iso', '--work-dir', 'other');
    expect(second.exitCode, second.stderr).toBe(0);
    expect(await digestFile(join(directory, 'two/two.iso'))).toBe(
      await digestFile(join(directory, 'one.iso')),
    );
    const sum = await readFile(join(directory, 'one.iso.sha256'), 'utf8');
    expect(sum).toBe(`${(await digestFile(join(directory, 'one.iso'))).slice(7)}  one.iso\n`);
    const report = await readFile(join(directory, 'one.iso.report.json'), 'utf8');
    expect(report).not.toMatch(/secret-word|dXNlcjpz/);
    expect(iso.includes('secret-word')).toBe(false);
    expect(iso.includes('dXNlcjpz')).toBe(false);
    expect(await hasFile(join(directory, 'one.iso.partial'))).toBe(false);
  });

  it('gives installed hosts one digest of all files of its registry', async () => {
    await world.writeConfig();
    const built = await world.run('build', '--output', 'digest.iso', '--force');
    expect(built.exitCode, built.stderr).toBe(0);
    const shown = await world.run('ignition', 'show', '--bootstrap', 'digest.iso');
    const bootstrap = parseIgnition(shown.stdout, 'shown');
    const install = readContents(findFile(bootstrap, '/etc/assisted/install.ign'));
    const script = findFile(parseIgnition(install, 'install'), COPY_SCRIPT);
    expect(readContents(script)).toContain(
      `readonly tree_digest='${await sumRegistry(join(world.directory, 'digest.iso'))}'\n`,
    );
  });

  it('is refused before the download when it would be larger than build.maxSize', async () => {
    await world.writeConfig('  maxSize: 1MiB');
    const outcome = await world.run('build', '--output', 'large.iso');
    expect(outcome.exitCode).toBe(3);
    expect(outcome.stderr).toContain('more than build.maxSize of 1.0 MiB');
    expect(await hasFile(join(world.directory, 'large.iso.partial'))).toBe(false);
  });

  it('is never written to standard output', async () => {
    await world.writeConfig();
    const outcome = await world.run('build', '--output', '-');
    expect(outcome.exitCode).toBe(2);
    expect(outcome.stderr).toContain('hint:');
  });

  it('is refused with the name of every missing image, and nothing is poured', async () => {
    const { host } = world.registry;
    await world.writeConfig(
      `additionalImages: [{name: "${host}/no/one:1"}, {name: "${host}/no/two:1"}]`,
    );
    const outcome = await world.run('build', '--output', 'missing.iso');
    expect(outcome.exitCode).toBe(4);
    expect(outcome.stderr).toMatch(/no\/one:1[\s\S]*no\/two:1/);
    expect(await hasFile(join(world.directory, 'missing.iso.partial'))).toBe(false);
  });
});
