import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { open, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runProcess } from '../../../src/base/process.ts';
import { openIso, type IsoImage } from '../../../src/iso/read/open.ts';
import { overlayAccess, type OverlayPart } from '../../../src/media/areas.ts';
import { planCustomisation } from '../../../src/media/customize/plan.ts';
import { openRandomAccess } from '../../../src/base/random-access.ts';
import type { CustomValues } from '../../../src/openshift/agent/values.ts';
import { TEST_SSH_KEY } from '../../support/installation-iso.ts';
import { makeCoreosIso, makeTestDirectory } from '../../support/iso.ts';
import { requireTool } from '../../support/tools.ts';

const hasTools = ['genisoimage', 'isohybrid', 'mformat', 'cpio', 'xorriso', 'ignition-validate']
  .map(requireTool)
  .every(Boolean);

describe.skipIf(!hasTools)('customising a live ISO of CoreOS', () => {
  let directory: string;
  let path: string;
  beforeAll(async () => {
    directory = await makeTestDirectory();
    path = await makeCoreosIso(directory);
  });
  afterAll(() => rm(directory, { recursive: true }));

  async function withIso<Result>(work: (iso: IsoImage) => Promise<Result>): Promise<Result> {
    const iso = await openIso(path);
    try {
      return await work(iso);
    } finally {
      await iso.close();
    }
  }

  const plan = (values: CustomValues): Promise<readonly OverlayPart[]> =>
    withIso((iso) => planCustomisation(iso, values));

  /** A copy with the parts written over it; what a foreign tool extracts of it. */
  async function applied(parts: readonly OverlayPart[]): Promise<string> {
    const copy = join(directory, 'customised.iso');
    await writeFile(copy, await readFile(path));
    const file = await open(copy, 'r+');
    for (const { bytes, offset } of parts) await file.write(bytes, 0, bytes.length, offset);
    await file.close();
    return copy;
  }

  async function extract(iso: string, inside: string): Promise<Buffer> {
    const output = join(directory, 'extracted');
    await rm(output, { force: true });
    await runProcess('xorriso', ['-osirrox', 'on', '-indev', iso, '-extract', inside, output]);
    return readFile(output);
  }

  async function unpackArea(iso: string): Promise<(name: string) => Buffer> {
    const area = join(directory, 'area.gz');
    await writeFile(area, await extract(iso, '/images/ignition.img'));
    // The zeros behind the archive are trailing garbage to gzip, which the kernel skips.
    const script = 'gzip -dcq "$1" 2>/dev/null | cpio -i --quiet --to-stdout "$2"';
    return (name) => execFileSync('sh', ['-c', script, 'sh', area, name], { stdio: 'pipe' });
  }

  it('puts the key and the secret into the config and the arguments into every menu, and changes nothing else', async () => {
    const parts = await plan({
      sshKeys: [TEST_SSH_KEY],
      pullSecret: '{"auths":{"quay.io":{"auth":"YTpi"}}}',
      kargs: { append: ['console=ttyS0', 'ip=dhcp'], remove: ['ignition.platform.id=metal'] },
    });
    const iso = await applied(parts);
    const config = (await unpackArea(iso))('config.ign');
    await writeFile(join(directory, 'config.ign'), config);
    execFileSync('ignition-validate', [join(directory, 'config.ign')]);
    expect(JSON.parse(config.toString())).toMatchObject({
      passwd: { users: [{ name: 'core', sshAuthorizedKeys: [TEST_SSH_KEY] }] },
      storage: { files: [{ path: '/root/.docker/config.json', mode: 0o600 }] },
    });
    for (const menu of ['/EFI/redhat/grub.cfg', '/isolinux/isolinux.cfg']) {
      const text = (await extract(iso, menu)).toString('latin1');
      expect(text).toMatch(
        / ignition\.firstboot console=ttyS0 ip=dhcp\n#+# COREOS_KARG_EMBED_AREA/,
      );
      expect(text).not.toContain('ignition.platform.id');
    }
    const [before, after] = [await readFile(path), await readFile(iso)];
    expect(after).toHaveLength(before.length);
    for (const { offset, bytes } of parts)
      bytes.forEach((_, at) => (after[offset + at] = before[offset + at] ?? 0));
    expect(after.equals(before)).toBe(true);
  });

  it('gives network profiles to the initramfs, with their directories', async () => {
    const networkConfig =
      'interfaces: [{name: eth0, type: ethernet, state: up, ipv4: {enabled: true, dhcp: true}}]';
    const interfaces = [{ name: 'eth0', macAddress: '52:54:00:00:00:01' }];
    const iso = await applied(await plan({ hosts: [{ networkConfig, interfaces }] }));
    const unpack = await unpackArea(iso);
    const profile = unpack('etc/coreos-firstboot-network/eth0.nmconnection').toString();
    expect(profile).toContain('interface-name=eth0\n');
    expect(unpack('config.ign')).toHaveLength(0);
  });

  it('gives the same bytes through a reader that lays the parts over the image', async () => {
    const parts = await plan({ sshKeys: [TEST_SSH_KEY] });
    const whole = await readFile(await applied(parts));
    const access = overlayAccess(await openRandomAccess(path), parts);
    const { offset } = parts[0] ?? { offset: 0 };
    for (const [from, size] of [
      [0, whole.length],
      [offset - 7, 20],
      [offset + 3, 5],
    ] as const) {
      expect((await access.read(from, size)).equals(whole.subarray(from, from + size))).toBe(true);
    }
    await access.close();
  });

  it('refuses values that do not fit, and values that nothing reads', async () => {
    const blocks = Array.from({ length: 5000 }, (_, at) =>
      createHash('sha512').update(`${at}`).digest(),
    );
    const source = `data:;base64,${Buffer.concat(blocks).toString('base64')}`;
    const files = [{ path: '/etc/large', contents: { source } }];
    const ignitionOverride = JSON.stringify({ ignition: { version: '3.2.0' }, storage: { files } });
    await expect(plan({ ignitionOverride })).rejects.toMatchObject({
      code: 'customize.too-large',
      expected: 'at most 262144',
    });
    await expect(plan({ rendezvousIp: '192.0.2.1' })).rejects.toMatchObject({
      code: 'customize.no-effect',
    });
    const hostnames = [{ macAddress: '52:54:00:00:00:01', name: 'a' }];
    await expect(plan({ hostnames })).rejects.toMatchObject({
      code: 'customize.no-effect',
    });
    await expect(plan({ kargs: { append: ['a'.repeat(2000)] } })).rejects.toMatchObject({
      code: 'kargs.too-large',
    });
  });
});
