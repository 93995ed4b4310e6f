import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** What gpgv says of a signed message: good, or why not. */
export async function askGpgv(
  directory: string,
  message: Uint8Array,
  keys: Uint8Array,
): Promise<'good' | 'bad'> {
  const [messagePath, keyPath] = [join(directory, 'message'), join(directory, 'keys.gpg')];
  await writeFile(messagePath, message);
  await writeFile(keyPath, keys);
  const args = ['--homedir', directory, '--status-fd', '1', '--keyring', keyPath, messagePath];
  const { stdout } = spawnSync('gpgv', args, { encoding: 'utf8' });
  return /^\[GNUPG:\] GOODSIG /m.test(stdout) ? 'good' : 'bad';
}
