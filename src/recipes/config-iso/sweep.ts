import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isErrno } from '../../base/errno.ts';

/** What a killed build left beside its files, with secrets in it. */
const LEFT_ASIDE =
  /^([a-z0-9-]+\.(iso|json|made\.json)|rotation\.marker|kubeconfig|kubeadmin-password)\.[0-9a-f]{12}\.tmp$/;

/** Removes them; call it only while the output is locked. */
export async function sweep(directory: string): Promise<void> {
  for (const name of await listNames(directory)) {
    if (LEFT_ASIDE.test(name)) await rm(join(directory, name), { force: true });
  }
}

async function listNames(directory: string): Promise<readonly string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return [];
    throw error;
  }
}
