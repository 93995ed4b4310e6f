import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeNewFile } from '../base/disk/open-file.ts';
import { ToolError } from '../base/errors.ts';
import { objectOrEmpty } from '../base/lists.ts';
import { findVersion, runProcess } from '../base/process.ts';
import { parse } from '../shape/parse-text.ts';
import { EMPTY_NETWORK } from './judge.ts';
import type { Keyfile } from './keyfile.ts';

/* This file owns the program nmstatectl. */

/** nmstate's answer to a document: profiles, or its objection. */
export type MadeProfiles =
  | { readonly profiles: readonly Keyfile[] }
  | {
      readonly problem: string;
      /** True if nmstate accepts the document, and its answer could not be read. */
      readonly isUnread?: true;
    };

/** The installed nmstate. */
export type NetworkTool = {
  readonly makeProfiles: (networkConfig: string, signal: AbortSignal) => Promise<MadeProfiles>;
};

const TIMEOUT_MS = 30_000;
const MAX_SHOWN = 300;

/**
 * Finds nmstatectl; undefined if it is not installed.
 *
 * @param env only its PATH is used; without PATH, nmstatectl is not found
 */
export async function findNetworkTool({
  env,
  signal,
}: {
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
}): Promise<NetworkTool | undefined> {
  const { PATH } = env;
  const version = await findVersion('nmstatectl', { PATH, signal });
  if (PATH === undefined || version === undefined) return undefined;
  return { makeProfiles: (networkConfig, signal) => generate(networkConfig, { PATH, signal }) };
}

/** Runs nmstatectl as openshift-install does, which prints the profiles of a configuration. */
async function generate(
  networkConfig: string,
  { PATH, signal }: { readonly PATH: string; readonly signal: AbortSignal },
): Promise<MadeProfiles> {
  const directory = await mkdtemp(join(tmpdir(), 'sealift-nmstate-'));
  try {
    const file = join(directory, 'network-config.yaml');
    await writeNewFile(file, networkConfig);
    const options = { env: { PATH }, timeout: TIMEOUT_MS, signal };
    const { stdout } = await runProcess('nmstatectl', ['gc', file], options);
    return readProfiles(stdout);
  } catch (error) {
    if (!(error instanceof ToolError)) throw error;
    return { problem: `failed to execute 'nmstatectl gc', error: ${lastError(error.message)}` };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** A name becomes a file on hosts: it must not lead to another directory. */
const FILE_NAME = /^[\p{L}\p{N}_][^/\p{Cc}]*\.nmconnection$/u;

/** `NetworkManager: [[<file name>, <content>], ...]` */
function readProfiles(stdout: string): MadeProfiles {
  const printed = readYaml(stdout);
  if (printed === undefined) {
    return { problem: "'nmstatectl gc' did not print YAML", isUnread: true };
  }
  const { NetworkManager: listed } = objectOrEmpty(printed);
  const profiles = (Array.isArray(listed) ? (listed as readonly unknown[]) : []).map((profile) => {
    const [name, content] = Array.isArray(profile) ? (profile as readonly unknown[]) : [];
    const isProfile = typeof name === 'string' && FILE_NAME.test(name);
    return isProfile && typeof content === 'string' ? { name, content } : undefined;
  });
  if (profiles.length === 0) return { problem: EMPTY_NETWORK };
  const complete = profiles.filter((profile) => profile !== undefined);
  return complete.length === profiles.length
    ? { profiles: complete }
    : { problem: "'nmstatectl gc' printed a profile without a name or content" };
}

function readYaml(text: string): unknown {
  try {
    return parse(text) ?? {};
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return undefined;
  }
}

/** Shortens an error to its last part, on one line, as the parts before it may quote the configuration. */
const lastError = (text: string): string =>
  text
    .slice(text.lastIndexOf('Error:') + 1)
    .replace(/^rror:/, '')
    // eslint-disable-next-line no-control-regex -- they would command the terminal
    .replaceAll(/[\0-\x1f\x7f-\x9f\u2028-\u202e]+/g, ' ')
    .trim()
    .slice(0, MAX_SHOWN);
