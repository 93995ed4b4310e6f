import { ConfigError, ToolError } from '../../base/errors.ts';
import type { UserInfo } from '../../base/http/basic.ts';
import { runProcess } from '../../base/process.ts';
import type { Redaction } from '../../base/text/redact.ts';
import { untilAborted } from '../../base/wait.ts';

/* Owns the programs that store credentials: how they are asked, and how their answers are read. */

/** `from` names the entry in messages; it never has the value. */
export type Credential =
  | (UserInfo & { readonly kind: 'basic'; readonly from: string })
  /** A refresh token, good for a token server only. */
  | { readonly kind: 'identity'; readonly token: string; readonly from: string };

/** RFC 7617 2: passwords have no control characters; `echo` adds one. */
export const hasLineBreak = (credential: Credential | undefined): boolean =>
  credential?.kind === 'basic' && /[\r\n]$/.test(credential.password);

type HelperQuestion = {
  readonly helper: string;
  readonly host: string;
  /** The answer that a registry refused. */
  readonly refused: Credential | undefined;
  readonly signal: AbortSignal;
};

type Asked = { readonly answer: Promise<Credential | undefined>; readonly isAgain: boolean };

/**
 * Asks each helper once for each host, because some open a window or ask a service that counts. An
 * answer and a failure count until the end of the run; an answer that a registry refused is asked for
 * again, once, because it may have expired.
 */
export function createHelperDesk(env: NodeJS.ProcessEnv, redaction: Redaction) {
  const known = new Map<string, Asked>();
  return async (question: HelperQuestion): Promise<Credential | undefined> => {
    const { helper, host, refused, signal } = question;
    const key = `${helper} ${host}`;
    const ask = (isAgain: boolean): Asked => {
      const asked = { answer: askHelper(helper, host, { env, redaction, signal }), isAgain };
      known.set(key, asked);
      asked.answer.catch(() => signal.aborted && known.delete(key));
      return asked;
    };
    const asked = known.get(key) ?? ask(false);
    const answer = await untilAborted(asked.answer, signal);
    const isOld = refused !== undefined && answer === refused;
    if (!isOld || asked.isAgain) return answer;
    const next = known.get(key);
    return untilAborted((next === asked || !next ? ask(true) : next).answer, signal);
  };
}

type Asking = {
  readonly env: NodeJS.ProcessEnv;
  readonly redaction: Redaction;
  readonly signal: AbortSignal;
};

const TIME_LIMIT = 60_000;

/** Characters; tokens have some thousand. */
const MAX_ANSWER = 1 << 20;

/**
 * Asks `docker-credential-<helper> get` (docker-credential-helpers protocol): the host on standard
 * input, JSON back, in which the user name `<token>` marks an identity token. Undefined if the helper
 * has nothing for the host.
 */
export async function askHelper(
  helper: string,
  host: string,
  { env, redaction, signal }: Asking,
): Promise<Credential | undefined> {
  const program = `docker-credential-${helper}`;
  if (!/^[\w.-]+$/.test(helper)) {
    throw new ConfigError(
      'credentials.helper',
      `"${helper}" is not a valid name for a credential helper`,
    );
  }
  const heard = { isNothing: false };
  try {
    const { stdout } = await runProcess(program, ['get'], {
      input: host,
      timeout: TIME_LIMIT,
      maxOutput: MAX_ANSWER,
      signal,
      env: Object.fromEntries(Object.entries(env).map(([key, value]) => [key, value ?? ''])),
      onFailure: (output, exitCode) => {
        heard.isNothing = isNothingStored(output, exitCode);
      },
      shownOutput: findKnownLine,
    });
    const answer = parseAnswer(stdout, program, `${program} for ${host}`);
    if (answer?.kind === 'basic') redaction.addLogin(answer.username, answer.password);
    if (answer?.kind === 'identity') redaction.add(answer.token);
    return answer;
  } catch (error) {
    if (!(error instanceof ToolError) || error.code !== 'tool.failed') throw error;
    if (heard.isNothing) return undefined;
    throw new ToolError('tool.failed', `${program} gives no answer for ${host}`, {
      cause: error,
      hint: `see what it says: echo ${host} | ${program} get`,
    });
  }
}

const NOT_FOUND = 'credentials not found in native keychain';

/** Messages of docker-credential-helpers and of stores below them; any other text may be a secret. */
const KNOWN_MESSAGES: ReadonlySet<string> = new Set([
  NOT_FOUND,
  'no credentials server URL',
  'no credentials username',
  'pass store is uninitialized',
  'Cannot autolaunch D-Bus without X11 $DISPLAY',
  'The name org.freedesktop.secrets was not provided by any .service files',
  'User interaction is not allowed.',
  'The user name or passphrase you entered is not correct.',
  'gpg: decryption failed: No secret key',
  'gpg: public key decryption failed: Inappropriate ioctl for device',
  'gpg: public key decryption failed: No pinentry',
]);

/** `pass` puts the ending of gpg before its message. */
const findKnownLine = (output: string): string =>
  output
    .split('\n')
    .map((line) => line.trim().replace(/^exit status \d+: /, ''))
    .find((line) => KNOWN_MESSAGES.has(line)) ?? '';

/** The protocol has no code for "nothing stored": docker compares the text; some helpers say nothing at all. */
const isNothingStored = (output: string, exitCode: number | undefined): boolean =>
  findKnownLine(output) === NOT_FOUND || (exitCode === 1 && output.trim() === '');

function parseAnswer(stdout: string, program: string, from: string): Credential | undefined {
  const { Username: username, Secret: secret } = parseJson(stdout, program);
  if (typeof username !== 'string' || typeof secret !== 'string') {
    throw malformedOfCredentialHelper(program, 'has no Username and Secret');
  }
  if (secret === '') return undefined;
  if (username === '<token>') return { kind: 'identity', token: secret, from };
  return { kind: 'basic', username, password: secret, from };
}

/** The text is secret: neither the cause nor the message may repeat it. */
function parseJson(stdout: string, program: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(stdout);
  } catch {
    throw malformedOfCredentialHelper(program, 'is not JSON');
  }
  if (typeof value === 'object' && value !== null) return value as Record<string, unknown>;
  throw malformedOfCredentialHelper(program, 'is not an object');
}

const malformedOfCredentialHelper = (program: string, reason: string): ConfigError =>
  new ConfigError('credentials.helper', `the answer of ${program} ${reason}`);
