import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeInstallerMarkers } from '../../../src/openshift/installer/installer.ts';

const RELEASE = { image: 'quay.io/a/b@sha256:00', version: '4.21.3', architecture: 'amd64' };
const IMAGE = '\0_RELEASE_IMAGE_LOCATION_\0';
let directory: string;
let path: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'installer-'));
  path = join(directory, 'openshift-install');
});
afterAll(() => rm(directory, { recursive: true }));

const patch = async (binary: Buffer | string): Promise<{ found: unknown; after: Buffer }> => {
  await writeFile(path, binary, 'latin1');
  const found = await writeInstallerMarkers(path, RELEASE);
  return { found, after: await readFile(path) };
};

describe('the places an installer reserves for its release', () => {
  it('get the value and a NUL; the rest of the padding stays', async () => {
    const { found, after } = await patch(`before${IMAGE}XXXXXXXX\0after`);
    expect(found).toEqual(['image']);
    const room = IMAGE.length + 8;
    const kept = `${IMAGE}XXXXXXXX`.slice(RELEASE.image.length + 1, room);
    expect(after.toString('latin1')).toBe(`before${RELEASE.image}\0${kept}\0after`);
  });

  it('are found at any offset, even across the pieces that are read', async () => {
    for (const offset of [0, 4_194_290, 4_194_304, 4_198_390]) {
      const binary = Buffer.alloc(9_000_000, '.');
      binary.write(`${IMAGE}${'X'.repeat(300)}\0`, offset, 'latin1');
      const { found, after } = await patch(binary);
      expect(found).toEqual(['image']);
      expect(after.toString('latin1', offset, offset + RELEASE.image.length + 1)).toBe(
        `${RELEASE.image}\0`,
      );
      expect(after).toHaveLength(binary.length);
    }
  });

  it('are not the same words without padding, which the program compares with', async () => {
    const text = `${IMAGE}; !_RELEASE_IMAGE_LOCATION_\0XXXX\0 ${IMAGE}XXXX`;
    const { found, after } = await patch(text);
    expect(found).toEqual([]);
    expect(after.toString('latin1')).toBe(text);
  });

  it('hold a value that fits exactly, and refuse a longer one', async () => {
    const version = '\0_RELEASE_VERSION_LOCATION_\0X\0';
    await writeFile(path, version, 'latin1');
    const exact = '4'.repeat(version.length - 1);
    await writeInstallerMarkers(path, { ...RELEASE, version: exact });
    expect((await readFile(path)).toString('latin1')).toBe(`${exact}\0`);
    await writeFile(path, version, 'latin1');
    await expect(
      writeInstallerMarkers(path, { ...RELEASE, version: `${exact}4` }),
    ).rejects.toMatchObject({ code: 'installer.value-too-long', exitCode: 5 });
  });
});
