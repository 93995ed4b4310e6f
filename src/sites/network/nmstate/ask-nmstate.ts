import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ToolError } from '../../../base/errors.ts';
import { writeNewFile } from '../../../base/disk/open-file.ts';
import { runProcess } from '../../../base/process.ts';

/** nmstate itself, where it is installed. */
export type Nmstate = {
  /** What nmstate has against a network configuration, or undefined. */
  readonly ask: (networkConfig: string, signal: AbortSignal) => Promise<string | undefined>;
};

const TIMEOUT_MS = 30_000;
const MAX_SHOWN = 300;

/** @param env the whole environment of nmstatectl; without PATH there is none */
export async function findNmstate({
  env,
  signal,
}: {
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
}): Promise<Nmstate | undefined> {
  const { PATH } = env;
  if (PATH === undefined) return undefined;
  try {
    await runProcess('nmstatectl', ['--version'], { env: { PATH }, timeout: TIMEOUT_MS, signal });
  } catch (error) {
    if (error instanceof ToolError) return undefined; // it is not there, or cannot run here
    throw error;
  }
  return { ask: (networkConfig, signal) => ask(networkConfig, { PATH, signal }) };
}

/** As openshift-install asks it: whether connections can be made of the configuration. */
async function ask(
  networkConfig: string,
  { PATH, signal }: { readonly PATH: string; readonly signal: AbortSignal },
): Promise<string | undefined> {
  const directory = await mkdtemp(join(tmpdir(), 'sealift-nmstate-'));
  try {
    const file = join(directory, 'network-config.yaml');
    await writeNewFile(file, networkConfig);
    const options = { env: { PATH }, timeout: TIMEOUT_MS, signal };
    const { stdout } = await runProcess('nmstatectl', ['gc', file], options);
    return /^NetworkManager:\s*(?!\[\])\S/m.test(stdout)
      ? undefined
      : 'nmstate generated an empty NetworkManager config file content';
  } catch (error) {
    if (!(error instanceof ToolError)) throw error;
    return `failed to execute 'nmstatectl gc', error: ${lastError(error.message)}`;
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Not all of it, and on one line: it may quote the configuration. */
const lastError = (text: string): string =>
  text
    .slice(text.lastIndexOf('Error:') + 1)
    .replace(/^rror:/, '')
    // eslint-disable-next-line no-control-regex -- they would command the terminal
    .replaceAll(/[\0-\x1f\x7f-\x9f\u2028-\u202e]+/g, ' ')
    .trim()
    .slice(0, MAX_SHOWN);
