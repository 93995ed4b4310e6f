import { readFileSync, writeFileSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';

/** Peak of the resident memory in MiB since it was taken last (proc(5), clear_refs). */
export function takePeak(): number {
  const [, peak = '0'] = /VmHWM:\s*(\d+)/.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
  writeFileSync('/proc/self/clear_refs', '5');
  return Number(peak) / 1024;
}

/** What the command before left is not memory of this one; buffers are freed a turn later. */
export async function forget(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) {
    global.gc?.();
    await setImmediate();
  }
}
