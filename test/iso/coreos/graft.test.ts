import { randomFillSync } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readCoreosLive } from '../../../src/iso/coreos/live.ts';
import { layOutIso } from '../../../src/iso/lay-out/lay-out.ts';
import { planLiveGraft } from '../../../src/iso/coreos/graft.ts';
import { openIso, type IsoImage } from '../../../src/iso/read/open.ts';
import { scanBaseIso } from '../../../src/iso/lay-out/scan.ts';
import { makeCoreosIso } from '../../support/iso.ts';
import { requireTool } from '../../support/tools.ts';
import { writeLayout } from '../../support/write-layout.ts';

const INITRD = '/images/bootstrap-appliance.img';

describe.skipIf(!requireTool('genisoimage') || !requireTool('isohybrid'))(
  'changing a live ISO',
  () => {
    let directory: string;
    beforeEach(async () => {
      directory = await mkdtemp(join(tmpdir(), 'sealift-graft-'));
    });
    afterEach(async () => {
      await rm(directory, { recursive: true, force: true });
    });

    async function graft(
      archive: Uint8Array,
      appendKargs: readonly string[],
      size?: number,
    ): Promise<IsoImage> {
      const path = await makeCoreosIso(directory);
      const iso = await openIso(path);
      const changes = await planLiveGraft(iso, await readCoreosLive(iso), {
        embed: { archive, ...(size !== undefined && { size }) },
        appendKargs,
        initrd: { path: INITRD, bytes: Buffer.from('an initrd') },
      });
      await iso.close();
      const layout = layOutIso({
        base: await scanBaseIso(path),
        files: changes.files,
        patches: changes.patches,
        remove: [],
        epoch: 0,
      });
      const output = join(directory, 'grafted.iso');
      await writeLayout(output, layout, { basePath: path });
      return openIso(output);
    }

    const readText = async (iso: IsoImage, path: string): Promise<string> => {
      const node = await iso.find(path);
      if (!node) throw new Error(`${path} is missing`);
      return Buffer.from(await iso.readFile(node)).toString('latin1');
    };

    it('gives every menu entry a third initrd and the same arguments in every area', async () => {
      const iso = await graft(Buffer.from('small'), ['fips=1', 'a=b']);
      const { kargs } = await readCoreosLive(iso);
      expect(kargs.text).toMatch(/ fips=1 a=b$/);
      expect(kargs.default).toBe(kargs.text);
      expect(kargs.areas).toHaveLength(2);
      const grub = await readText(iso, '/EFI/redhat/grub.cfg');
      expect(grub).toMatch(/^\s+initrd \S+ \S+ \/images\/bootstrap-appliance\.img$/m);
      expect(grub).toContain('# COREOS_KARG_EMBED_AREA\n');
      const isolinux = await readText(iso, '/isolinux/isolinux.cfg');
      expect(isolinux).toContain(`/images/ignition.img,${INITRD} coreos.liveiso=`);
      await iso.close();
    });

    it('fills the embed area in place, with zeros after the archive', async () => {
      const base = await openIso(await makeCoreosIso(directory));
      const before = await readCoreosLive(base);
      await base.close();
      const iso = await graft(Buffer.from('archive'), []);
      const { embedArea } = await readCoreosLive(iso);
      expect(embedArea).toEqual(before.embedArea);
      const bytes = Buffer.from(await iso.readBytes(embedArea.offset, embedArea.size));
      expect(bytes.toString('latin1').replace(/\0+$/, '')).toBe('archive');
      await iso.close();
    });

    it('grows the area for an archive that does not fit, and updates igninfo.json', async () => {
      const archive = randomFillSync(Buffer.alloc(300_000));
      const iso = await graft(archive, []);
      const { embedArea } = await readCoreosLive(iso);
      expect(embedArea.grown).toBe(true);
      expect(embedArea.size).toBeGreaterThan(archive.length + 65_535);
      const bytes = Buffer.from(await iso.readBytes(embedArea.offset, embedArea.size));
      expect(bytes.subarray(0, archive.length).equals(archive)).toBe(true);
      expect(await readText(iso, '/coreos/igninfo.json')).toContain(`"length": ${embedArea.size}`);
      await iso.close();
    });

    it('makes an area of the given size, which does not grow with the archive', async () => {
      const [archive, size] = [randomFillSync(Buffer.alloc(300_000)), 300_001];
      for (const bytes of [archive, Buffer.from('archive')]) {
        const iso = await graft(bytes, [], size);
        expect((await readCoreosLive(iso)).embedArea.size).toBe(size);
        await iso.close();
      }
      await expect(graft(archive, [], 299_999)).rejects.toMatchObject({
        code: 'base-iso.fixed-embed-area',
        expected: 'at most 299999',
        found: '300000',
      });
    });
  },
);
