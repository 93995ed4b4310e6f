import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { listMissing } from '../test/boot/boot-host.ts';
import { makeLiveMedium } from '../test/boot/live-medium.ts';
import { boot, BOOT_FAILURES } from '../test/boot/qemu.ts';

/** An emulated machine is slow, and nothing is known of the one that emulates it. */
const TIMEOUT = 1_800_000;

/** Builds a live ISO with a kernel of this Debian or Ubuntu, and boots it in QEMU. */
export async function bootDemo(): Promise<void> {
  const missing = listMissing();
  if (missing.length > 0) {
    console.error(`The demo cannot boot here. Missing: ${missing.join(', ')}.`);
    console.error('On Debian or Ubuntu as root, bash scripts/install-tools.sh boot installs them.');
    process.exitCode = 1;
    return;
  }
  const directory = await mkdtemp(join(tmpdir(), 'sealift-demo-'));
  console.log('Making a live system out of Debian packages (a few minutes the first time), and');
  console.log('building a live ISO on it ...');
  const { iso } = await makeLiveMedium(directory);
  console.log(
    `\nBooting ${iso} in QEMU, without network. What the live system proves of itself:\n`,
  );
  const { seconds } = await boot({
    iso,
    firmware: 'seabios',
    as: 'disk',
    timeoutMs: TIMEOUT,
    until: /PROOF done/,
    fail: BOOT_FAILURES,
    onLine: (line) => {
      if (line.startsWith('PROOF ')) console.log(line.slice('PROOF '.length));
    },
  });
  console.log(`\nBooted and proved in ${seconds.toFixed(0)} s. The medium: ${iso}`);
}
