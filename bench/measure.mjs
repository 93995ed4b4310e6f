// @ts-check
// Loaded into a measured process: at its end it writes down what the kernel counted for it.
import { readFileSync, writeFileSync } from 'node:fs';

const file = process.env['SEALIFT_BENCH_MEASURE'];
if (file !== undefined) {
  process.on('exit', () => {
    const io = readFileSync('/proc/self/io', 'latin1');
    const status = readFileSync('/proc/self/status', 'latin1');
    /** @param {string} text @param {RegExp} pattern */
    const number = (text, pattern) => Number(pattern.exec(text)?.[1] ?? Number.NaN);
    const { user, system } = process.cpuUsage();
    writeFileSync(
      file,
      JSON.stringify({
        writtenBytes: number(io, /^write_bytes: (\d+)/m),
        readBytes: number(io, /^read_bytes: (\d+)/m),
        peakRssMiB: number(status, /^VmHWM:\s+(\d+) kB/m) / 1024,
        userSeconds: user / 1e6,
        systemSeconds: system / 1e6,
      }),
    );
  });
}
