import { ConfigError, ToolError } from '../../../base/errors.ts';
import { runProcess } from '../../../base/process.ts';
import { rememberCredential, rememberSecret } from '../../../base/text/redact.ts';
import type { Credential } from './credential.ts';

export type Asking = { readonly env: NodeJS.ProcessEnv; readonly signal: AbortSignal };

const TIME_LIMIT = 60_000;

/** Characters; tokens have some thousand. */
const MAX_ANSWER = 1 << 20;

/**
 * Asks `docker-credential-<helper> get` (docker-credential-helpers protocol): the host on standard
 * input, JSON back, where the user name `<token>` marks an identity token. A helper that has nothing
 * for the host ends with an error and says so; that is undefined here.
 *
 * @throws ToolError `tool.missing`, `tool.timeout`, `tool.failed`; ConfigError `credentials.helper`
 */
export async function askHelper(
  helper: string,
  host: string,
  { env, signal }: Asking,
): Promise<Credential | undefined> {
  const program = `docker-credential-${helper}`;
  if (!/^[\w.-]+$/.test(helper)) {
    throw new ConfigError(
      'credentials.helper',
      `"${helper}" is not a valid name for a credential helper`,
    );
  }
  try {
    const { stdout } = await runProcess(program, ['get'], {
      input: host,
      timeout: TIME_LIMIT,
      maxOutput: MAX_ANSWER,
      signal,
      env: Object.fromEntries(Object.entries(env).map(([key, value]) => [key, value ?? ''])),
      onFailure: rememberAnswers,
    });
    return parseAnswer(stdout, program, `${program} for ${host}`);
  } catch (error) {
    if (error instanceof ToolError && error.code === 'tool.failed' && !hasFailed(error)) {
      return undefined;
    }
    throw error;
  }
}

/** One that fails after it printed its answer, or prints it to standard error, is quoted without it. */
function rememberAnswers(output: string): void {
  for (const [, value = ''] of output.matchAll(
    /"(?:Secret|Username)"\s*:\s*"((?:[^"\\]|\\.)*)"/gi,
  )) {
    rememberSecret(value);
  }
}

/**
 * The protocol has no code for "nothing stored": helpers exit 1 with nothing on stderr (the words
 * "credentials not found" go to stdout), while a real failure explains itself there.
 */
const hasFailed = (error: ToolError): boolean => !/ended with exit code 1: *$/.test(error.message);

function parseAnswer(stdout: string, program: string, from: string): Credential | undefined {
  const { Username: username, Secret: secret } = parseJson(stdout, program);
  if (typeof username !== 'string' || typeof secret !== 'string') {
    throw malformed(program, 'has no Username and Secret');
  }
  if (secret === '') return undefined;
  rememberCredential(username, secret);
  if (username === '<token>') return { kind: 'identity', token: secret, from };
  return { kind: 'basic', username, password: secret, from };
}

/** The text is secret: neither cause nor message repeats it. */
function parseJson(stdout: string, program: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(stdout);
  } catch {
    throw malformed(program, 'is not JSON');
  }
  if (typeof value === 'object' && value !== null) return value as Record<string, unknown>;
  throw malformed(program, 'is not an object');
}

const malformed = (program: string, reason: string): ConfigError =>
  new ConfigError('credentials.helper', `the answer of ${program} ${reason}`);
