import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { encodeCpio } from '../../../src/ignition/cpio.ts';
import { openIso } from '../../../src/iso/read/open.ts';
import { encodeSmallIso } from '../../../src/iso/index.ts';
import {
  openshiftOf,
  osStreamOf,
  readSystemName,
} from '../../../src/openshift/release/os-stream.ts';

describe('the volume name of a live ISO', () => {
  it.each([
    ['rhcos-10.1.20260301-0', 'rhel-10', undefined],
    ['rhcos-9.6.20250523-0', 'rhel-9', undefined],
    ['rhcos-418.94.202410090804-0', 'rhel-9', '4.18'],
    ['rhcos-49.84.202110081407-0', 'rhel-8', '4.9'],
    ['rhcos-410.84.202202251620-0', 'rhel-8', '4.10'],
    ['fedora-coreos-42.20250410.3.1', undefined, undefined],
    ['agent_configimage', undefined, undefined],
  ])('%s tells the stream %s and OpenShift %s', (volume, stream, version) => {
    expect([osStreamOf(volume), openshiftOf(volume)]).toEqual([stream, version]);
  });
});

describe('the name of the system in a live ISO', () => {
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'sealift-system-'));
  });
  afterAll(() => rm(directory, { recursive: true }));

  const nameOf = async (volumeId: string, rootfs: Uint8Array): Promise<string> => {
    const path = join(directory, 'a.iso');
    const directories = ['/images', '/images/pxeboot'];
    const files = [{ path: '/images/pxeboot/rootfs.img', mode: 0o444, bytes: rootfs }];
    await writeFile(path, encodeSmallIso({ volumeId, directories, files, epoch: 0 }));
    const iso = await openIso(path);
    try {
      return await readSystemName(iso);
    } finally {
      await iso.close();
    }
  };
  const rootfs = (version: string, name = 'etc/coreos-live-rootfs'): Uint8Array =>
    encodeCpio([
      { name: 'root.squashfs', mode: 0o644, data: Buffer.alloc(3_000_001, 1) },
      { name, mode: 0o644, data: Buffer.from(version) },
    ]);

  it('is that of the system, whatever the volume is called', async () => {
    expect(await nameOf('SITE_A', rootfs('418.94.202410090804-0\n'))).toBe(
      'rhcos-418.94.202410090804-0',
    );
  });

  it.each<[string, Uint8Array]>([
    ['no archive', Buffer.from('a root file system')],
    ['an archive that is cut off', rootfs('9.6.20250523-0').subarray(0, 3_000_200)],
    ['no version', rootfs('9.6.20250523-0', 'etc/other')],
    ['another form of version', rootfs('latest')],
    ['a member that claims to be huge', Buffer.from(`070701${'f'.repeat(104)}`)],
  ])('is that of the volume for %s', async (_, bytes) => {
    expect(await nameOf('rhcos-9.4.20250101-0', bytes)).toBe('rhcos-9.4.20250101-0');
  });

  it('is that of the volume for Fedora, whose versions look like old ones of RHCOS', async () => {
    const volume = 'fedora-coreos-42.20250410.3.1';
    expect(await nameOf(volume, rootfs('42.20250410.3-1'))).toBe(volume);
  });
});
