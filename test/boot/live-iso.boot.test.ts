import { beforeAll, describe, expect, it } from 'vitest';
import { hasBootHost } from './boot-host.ts';
import { digestTree } from './digest-tree.ts';
import { shareLiveMedium } from './live-medium.ts';
import { bootMatrix, MATRIX, type MatrixResult } from './matrix.ts';

describe.skipIf(!hasBootHost())(
  'a live ISO that was pulled, updated with a delta and customised at its site',
  () => {
    let iso = '';
    let results: readonly MatrixResult[] = [];

    beforeAll(async () => {
      ({ iso } = await shareLiveMedium(AbortSignal.timeout(1_500_000)));
      results = await bootMatrix(iso);
      for (const { firmware, as, seconds, proofs } of results) {
        console.log(`${firmware} ${as}: ${seconds.toFixed(0)} s\n${proofs.join('\n')}`);
      }
    }, 3_600_000);

    const proofsOf = (firmware: string, as: string): string => {
      const result = results.find((each) => each.firmware === firmware && each.as === as);
      return result?.proofs.join('\n') ?? '';
    };

    it.each(MATRIX)('boots with $firmware as $as and mounts its registry data', (entry) => {
      const proofs = proofsOf(entry.firmware, entry.as);
      expect(proofs).toMatch(/^PROOF ignition-user ok/m);
      expect(proofs).toMatch(/^PROOF ignition-base ok .*99-bootstrap\.ign/m);
      expect(proofs).toMatch(/^PROOF agentdata ok .*\[\/registry\] iso9660 ro/m);
    });

    it('serves its images to the host that it booted', () => {
      const proofs = proofsOf('seabios', 'disk');
      expect(proofs).toMatch(/^PROOF registry tls 22625 ok/m);
      expect(proofs).toMatch(/^PROOF pull component sha256:[0-9a-f]{64} ok quay\.io/m);
      expect(proofs).toMatch(/^PROOF pull additional sha256:[0-9a-f]{64} ok quay\.io/m);
      expect(proofs).toMatch(/^PROOF ssh key mode ok 600 core/m);
      expect(proofs).toMatch(/^PROOF pull-secret mode ok 600 root:root/m);
      expect(proofs).toMatch(/^PROOF files \d+ ok/m);
    });

    it('keeps the EFI system partition bootable and its volume label findable', () => {
      const stick = results.find(({ firmware, as }) => firmware === 'ovmf' && as === 'usb-esp');
      expect(stick?.lines).toContain('Booting via ESP...');
    });

    it("shows the Linux kernel the same files as sealift's own reader", async () => {
      const tree = /^PROOF tree (\d+) ([0-9a-f]{64})$/m.exec(proofsOf('seabios', 'disk'));
      expect([Number(tree?.[1]), tree?.[2]]).toEqual(await digestTree(iso));
    });
  },
);
