import { copyFile, open } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openIso } from '../../src/iso/index.ts';
import type { Rehearsal } from '../../src/media/rehearse/rehearse.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';

/*
 * A whole medium is played without a complaint, and a broken one with the reason. The judges compare the pulls with
 * a foreign program.
 */

let world: LiveWorld;
let iso = '';

beforeAll(async () => {
  world = await createLiveWorld();
  await world.writeConfig();
  expect(await world.run('build', 'live-iso', '--output', 'live.iso')).toMatchObject({
    exitCode: 0,
  });
  iso = join(world.directory, 'live.iso');
}, 60_000);
afterAll(() => world.close());

async function play(path: string): Promise<{ exitCode: number; value: Rehearsal }> {
  const { exitCode, stdout } = await world.run('rehearse', path, '-o', 'json');
  return { exitCode, value: JSON.parse(stdout) as Rehearsal };
}

const failing = ({ steps }: Rehearsal): string[] =>
  steps
    .filter(({ outcome }) => outcome === 'will-not')
    .map(({ name, reason }) => `${name}: ${reason ?? ''}`);

/** Writes bytes over those at an offset of a copy. */
async function breakCopy(name: string, offset: number, bytes: Uint8Array): Promise<string> {
  const path = join(world.directory, name);
  await copyFile(iso, path);
  const file = await open(path, 'r+');
  await file.write(bytes, 0, bytes.length, offset);
  await file.close();
  return path;
}

/** The place of a file of the medium. */
async function locate(
  wanted: (path: string) => boolean,
): Promise<{ path: string; offset: number; size: number }> {
  const image = await openIso(iso);
  try {
    for await (const { path, node } of image.walk()) {
      const [extent] = node.kind === 'file' ? node.extents : [];
      if (extent && wanted(path)) return { path, ...extent };
    }
    throw new Error('the medium has no such file');
  } finally {
    await image.close();
  }
}

describe('a rehearsal', () => {
  it('of a whole medium finds nothing that fails', async () => {
    const { exitCode, value } = await play(iso);
    expect(failing(value)).toEqual([]);
    expect({ exitCode, ok: value.ok }).toEqual({ exitCode: 0, ok: true });
    expect(new Set(value.steps.map(({ part }) => part))).toContain('pulls');
    expect(value.needs.map(({ host }) => host)).toContain('control plane');
    expect(value.reading?.most).toBeGreaterThan(value.reading?.least ?? 0);
  });

  it('is printed for people and as a table', async () => {
    const { stdout } = await world.run('rehearse', iso);
    expect(stdout).toContain('  will      systemd starts the registry\n');
    expect(stdout).toMatch(/steps will happen.*\n$/);
    const { stdout: table } = await world.run('rehearse', iso, '-o', 'markdown');
    expect(table).toContain('| registry | systemd starts the registry | will |  |  |\n');
  });

  it('of a medium with another volume says that the live system does not find it', async () => {
    const path = await breakCopy(
      'volume.iso',
      16 * 2048 + 40,
      Buffer.from('another-volume'.padEnd(32)),
    );
    const { exitCode, value } = await play(path);
    expect(exitCode).toBe(8);
    expect(failing(value).join('\n')).toContain('wait for volume');
  });

  it('of a medium without the link of a manifest says which image nodes do not get', async () => {
    const link = await locate((path) =>
      /_manifests\/revisions\/sha256\/[0-9a-f]{64}\/link$/.test(path),
    );
    const path = await breakCopy('link.iso', link.offset, Buffer.alloc(link.size));
    const { exitCode, value } = await play(path);
    expect(exitCode).toBe(8);
    expect(failing(value).join('\n')).toMatch(/nodes pull .*sha256:[0-9a-f]{64}/);
  });

  it('of a medium with a kernel of no bytes in its menu says which file is missing', async () => {
    const menu = await locate((path) => path.endsWith('/grub.cfg'));
    const image = await openIso(iso);
    const text = await image.readBytes(menu.offset, menu.size);
    await image.close();
    const broken = Buffer.from(
      text.toString('latin1').replaceAll('pxeboot/vmlinuz', 'pxeboot/vmlinuX'),
      'latin1',
    );
    const { value } = await play(await breakCopy('kernel.iso', menu.offset, broken));
    expect(failing(value).join('\n')).toContain('/images/pxeboot/vmlinuX is not on the medium');
  });
});
