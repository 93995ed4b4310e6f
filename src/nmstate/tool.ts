import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeNewFile } from '../base/disk/open-file.ts';
import { ToolError, ConfigError } from '../base/errors.ts';
import { objectOrEmpty } from '../base/lists.ts';
import { runProcess } from '../base/process.ts';
import { escapeCharacter } from '../base/text/words.ts';
import { isOtherInYaml } from '../shape/decode-yaml.ts';
import { parse } from '../shape/parse-text.ts';
import type { Plain } from '../shape/shape.ts';
import { renderKeyfiles } from './profiles.ts';
import { malformed, type HostNetwork, type Keyfile } from './values.ts';

/*
 * This file owns the program nmstatectl, the profiles that only it can make, and the normal form
 * of an nmstate document.
 */

/** The installed nmstate. */
export type Nmstate = {
  /** nmstate's objection to a network configuration; undefined if it accepts it. */
  readonly ask: (networkConfig: string, signal: AbortSignal) => Promise<string | undefined>;
  /** The profiles that it makes. @throws ConfigError `nmstate.malformed` */
  readonly makeProfiles: (
    networkConfig: string,
    signal: AbortSignal,
  ) => Promise<readonly Keyfile[]>;
};

const TIMEOUT_MS = 30_000;
const MAX_SHOWN = 300;

/**
 * Finds nmstatectl; undefined if it is not installed.
 *
 * @param env only its PATH is used; without PATH, nmstatectl is not found
 */
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
    if (error instanceof ToolError) return undefined; // nmstatectl does not exist, or cannot run here
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

/**
 * Runs nmstatectl as openshift-install does, which prints the profiles of a configuration.
 */
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

/** A name becomes a file on hosts: it must not lead to another directory. */
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

/** Shortens an error to its last part, on one line, as the parts before it may quote the configuration. */
const lastError = (text: string): string =>
  text
    .slice(text.lastIndexOf('Error:') + 1)
    .replace(/^rror:/, '')
    // eslint-disable-next-line no-control-regex -- they would command the terminal
    .replaceAll(/[\0-\x1f\x7f-\x9f\u2028-\u202e]+/g, ' ')
    .trim()
    .slice(0, MAX_SHOWN);

/**
 * Adds to hosts the profiles that only nmstate itself makes: for networks with a type or a member
 * that needs nmstate. All others are made here, so that the same values give the same
 * bytes on every machine.
 *
 * @throws ConfigError `nmstate.unsupported` if nmstatectl is not installed, `nmstate.malformed`
 */
export async function addProfiles(
  hosts: readonly HostNetwork[],
  host: Parameters<typeof findNmstate>[0],
): Promise<readonly HostNetwork[]> {
  const added: HostNetwork[] = [];
  for (const each of hosts) {
    const unsupported = explainUnsupported(each);
    if (!unsupported) {
      added.push(each);
      continue;
    }
    const nmstate = await findNmstate(host);
    if (!nmstate) throw unsupported;
    const keyfiles = await nmstate.makeProfiles(each.networkConfig, host.signal);
    added.push({ ...each, keyfiles });
  }
  return added;
}

function explainUnsupported({ networkConfig }: HostNetwork): ConfigError | undefined {
  try {
    renderKeyfiles(networkConfig);
    return undefined;
  } catch (error) {
    if (error instanceof ConfigError && error.code === 'nmstate.unsupported') return error;
    throw error;
  }
}

/**
 * Text that every reader of YAML takes as a plain scalar in every context: no indicator at the
 * beginning, no colon at the end of a word.
 */
const PLAIN =
  /^(?:[A-Za-z0-9_./]|:(?=[^ ]))(?:[A-Za-z0-9_./+@%=-]|:(?=[^ ])| (?=[A-Za-z0-9_./]))*$/;

/** Characters that a single-quoted text on one line cannot show (YAML 1.1, 5.1 and 9.2). */
// eslint-disable-next-line no-control-regex -- control characters are what it looks for
const UNPRINTABLE = /[\0-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]/;

/**
 * Formats an nmstate document in its normal form: keys sorted on every level, two spaces for each level,
 * lists not indented, quotes only if YAML 1.1 would read another type, a newline at the end.
 */
export const formatNetworkConfig = (value: Plain): string =>
  isEmpty(value) ? `${formatScalar(value)}\n` : `${formatBlock(value, '').join('\n')}\n`;

function formatBlock(value: Plain, indent: string): readonly string[] {
  if (Array.isArray(value)) {
    return (value as readonly Plain[]).flatMap((item) => {
      if (isEmpty(item)) return [`${indent}- ${formatScalar(item)}`];
      const [first = '', ...rest] = formatBlock(item, `${indent}  `);
      return [`${indent}- ${first.slice(indent.length + 2)}`, ...rest];
    });
  }
  const map = value as Readonly<Record<string, Plain>>;
  return Object.keys(map)
    .toSorted(compareCodePoints)
    .flatMap((key) => formatMember(key, map[key] ?? null, indent));
}

function formatMember(key: string, value: Plain, indent: string): readonly string[] {
  const name = `${indent}${formatText(key)}:`;
  if (isEmpty(value)) return [`${name} ${formatScalar(value)}`];
  return [name, ...formatBlock(value, Array.isArray(value) ? indent : `${indent}  `)];
}

/** True if the value fits on one line: a scalar, or a collection without members. */
const isEmpty = (value: Plain): boolean =>
  typeof value !== 'object' || value === null || Object.keys(value).length === 0;

function formatScalar(value: Plain): string {
  if (typeof value === 'string') return formatText(value);
  if (Array.isArray(value)) return '[]';
  return typeof value === 'object' && value !== null ? '{}' : String(value);
}

function formatText(text: string): string {
  if (isOtherInYaml(text)) return JSON.stringify(text);
  if (PLAIN.test(text)) return text;
  if (!UNPRINTABLE.test(text.replaceAll(/[\ud800-\udbff][\udc00-\udfff]/g, ''))) {
    return `'${text.replaceAll("'", "''")}'`;
  }
  return JSON.stringify(text).replaceAll(
    /[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]/g,
    escapeCharacter,
  );
}

/** Compares by UTF-8 bytes. */
const compareCodePoints = (a: string, b: string): number =>
  Buffer.compare(Buffer.from(a), Buffer.from(b));
