import { beforeAll, describe, expect, it } from 'vitest';
import { hasBootHost } from './boot-host.ts';
import { shareLiveMedium } from './live-medium.ts';
import { boot, BOOT_FAILURES, type Boot } from './qemu.ts';

describe.skipIf(!hasBootHost())('a disk image that is the disk of a machine', () => {
  let result: Boot = { lines: [], seconds: 0 };

  beforeAll(async () => {
    const { disk } = await shareLiveMedium(AbortSignal.timeout(1_500_000));
    const until = /PROOF agentdata ok/;
    result = await boot({ firmware: 'seabios', as: 'disk', iso: disk, until, fail: BOOT_FAILURES });
    console.log(`disk image: ${result.seconds.toFixed(0)} s`);
  }, 3_600_000);

  it('boots our menu entry, which waits for the volume of its own partition', () => {
    const command = result.lines.find((line) => line.includes('Command line:'));
    expect(command).toContain('coreos.liveiso=agentboot');
    expect(command).toContain('/images/pxeboot/vmlinuz');
  });

  it('applies both configs, and mounts the registry of partition agentdata', () => {
    const proofs = result.lines.filter((line) => line.startsWith('PROOF ')).join('\n');
    expect(proofs).toMatch(/^PROOF ignition-user ok/m);
    expect(proofs).toMatch(/^PROOF ignition-base ok .*99-bootstrap\.ign/m);
    expect(proofs).toMatch(/^PROOF agentdata ok \/dev\/vda6\[\/registry\] iso9660 ro/m);
  });
});
