import { readFile, type FileHandle } from 'node:fs/promises';

/** Sets the permission bits of a file that may have others already, less the umask, as if it were new. */
export const setMode = async (file: FileHandle, mode: number): Promise<void> =>
  file.chmod(mode & ~(await readUmask()));

/** The umask: proc(5), /proc/pid/status. Node's own call would change it for a moment, for all threads. */
async function readUmask(): Promise<number> {
  const status = await readFile('/proc/self/status', 'latin1').catch(() => '');
  const [, octal = '077'] = /^Umask:\s*([0-7]+)$/m.exec(status) ?? [];
  return Number.parseInt(octal, 8);
}
