import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ToolError } from '../../../base/errors.ts';
import { objectOrEmpty } from '../../../base/lists.ts';
import { parse } from '../../../shape/parse-text.ts';
import type { Keyfile } from '../../../openshift/customisation/custom-values.ts';
import { malformed } from '../../../openshift/customisation/keyfile-text.ts';
import { writeNewFile } from '../../../base/disk/open-file.ts';
import { runProcess } from '../../../base/process.ts';

/** nmstate itself, where it is installed. */
export type Nmstate = {
  /** What nmstate has against a network configuration, or undefined. */
  readonly ask: (networkConfig: string, signal: AbortSignal) => Promise<string | undefined>;
  /** The profiles that it makes. @throws ConfigError `nmstate.malformed` */
  readonly makeProfiles: (
    networkConfig: string,
    signal: AbortSignal,
  ) => Promise<readonly Keyfile[]>;
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
  return {
    async ask(networkConfig, signal) {
      const { stdout, problem } = await generate(networkConfig, { PATH, signal });
      return problem ?? (/^NetworkManager:\s*(?!\[\])\S/m.test(stdout) ? undefined : NOTHING);
    },
    async makeProfiles(networkConfig, signal) {
      const { stdout, problem } = await generate(networkConfig, { PATH, signal });
      if (problem !== undefined) throw malformed(problem);
      return readProfiles(stdout);
    },
  };
}

const NOTHING = 'nmstate generated an empty NetworkManager config file content';

type Generated = { readonly stdout: string; readonly problem?: string };

/** As openshift-install asks it: which connections are made of the configuration. */
async function generate(
  networkConfig: string,
  { PATH, signal }: { readonly PATH: string; readonly signal: AbortSignal },
): Promise<Generated> {
  const directory = await mkdtemp(join(tmpdir(), 'sealift-nmstate-'));
  try {
    const file = join(directory, 'network-config.yaml');
    await writeNewFile(file, networkConfig);
    const options = { env: { PATH }, timeout: TIMEOUT_MS, signal };
    return await runProcess('nmstatectl', ['gc', file], options);
  } catch (error) {
    if (!(error instanceof ToolError)) throw error;
    const problem = `failed to execute 'nmstatectl gc', error: ${lastError(error.message)}`;
    return { stdout: '', problem };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** A name leads to a file on hosts: nothing that it says may lead elsewhere. */
const FILE_NAME = /^[A-Za-z0-9_][A-Za-z0-9_.:@-]*\.nmconnection$/;

/** `NetworkManager: [[<file name>, <content>], ...]` */
function readProfiles(stdout: string): readonly Keyfile[] {
  const { NetworkManager: listed } = objectOrEmpty(readYaml(stdout));
  const profiles = Array.isArray(listed) ? (listed as readonly unknown[]) : [];
  if (profiles.length === 0) throw malformed(NOTHING);
  return profiles.map((profile) => {
    const [name, content] = Array.isArray(profile) ? (profile as readonly unknown[]) : [];
    if (typeof name === 'string' && FILE_NAME.test(name) && typeof content === 'string') {
      return { name, content };
    }
    throw malformed("'nmstatectl gc' printed a profile without a name or content");
  });
}

function readYaml(text: string): unknown {
  try {
    return parse(text);
  } catch (cause) {
    throw malformed("'nmstatectl gc' did not print YAML", cause);
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
