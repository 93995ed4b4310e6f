import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, YAMLParseError } from 'yaml';
import { ToolError } from '../../base/errors.ts';
import { runProcess } from '../../base/process.ts';

/** What nmstate itself has to say of a document. */
export type NmstateVerdict =
  | { readonly kind: 'accepted' }
  | { readonly kind: 'refused'; readonly why: string }
  /** nmstatectl is not installed. */
  | { readonly kind: 'unseen' };

export type NmstateHost = {
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
};

const TIME_LIMIT = 60_000;

/** Lets `nmstatectl gc` make NetworkManager profiles of a document, and throws them away. */
export async function askNmstatectl(
  text: string,
  { env: { PATH = '' }, signal }: NmstateHost,
): Promise<NmstateVerdict> {
  const directory = await mkdtemp(join(tmpdir(), 'sealift-nmstate-'));
  try {
    const path = join(directory, 'network-config.yaml');
    await writeFile(path, text, { mode: 0o600 });
    const options = { env: { PATH }, signal, timeout: TIME_LIMIT };
    const { stdout } = await runProcess('nmstatectl', ['gc', path], options);
    return judgeProfiles(stdout);
  } catch (error) {
    if (!(error instanceof ToolError)) throw error;
    if (error.code === 'tool.missing') return { kind: 'unseen' };
    return {
      kind: 'refused',
      why: `failed to execute 'nmstatectl gc', error: ${lastError(error)}`,
    };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** `NetworkManager:` and a list of names with contents. */
function judgeProfiles(stdout: string): NmstateVerdict {
  const profiles = parseProfiles(stdout);
  if (Array.isArray(profiles) && profiles.length > 0) return { kind: 'accepted' };
  return {
    kind: 'refused',
    why: 'nmstate generated an empty NetworkManager config file content',
  };
}

function parseProfiles(stdout: string): unknown {
  try {
    const output = parse(stdout) as { readonly NetworkManager?: unknown } | null;
    return output?.NetworkManager;
  } catch (error) {
    if (error instanceof YAMLParseError) return undefined;
    throw error;
  }
}

/** The program's own words, of which only the last cause matters. */
function lastError({ message }: ToolError): string {
  const mark = 'Error:';
  const at = message.lastIndexOf(mark);
  return (at < 0 ? message : message.slice(at + mark.length)).trim();
}
