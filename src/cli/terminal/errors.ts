import type { CommanderError } from 'commander';
import {
  SealiftError,
  UsageError,
  ConfigProblems,
  formatProblem,
  InterruptedError,
  ReaderGoneError,
} from '../../base/errors.ts';
import type { Redaction } from '../../base/text/redact.ts';
import { formatCommand } from '../../base/text/shell.ts';
import type { CliHost } from '../host.ts';
import { indentLines, showEvent, showMessage, type Messages } from './output.ts';

/** Prints a failure to stderr and returns the exit code. */
export function printError(
  host: Messages & Pick<CliHost, 'variables'>,
  error: unknown,
  isJson: boolean,
): number {
  const { text, exitCode } = describeError(error, host.redaction);
  // An option that the environment sets can be wrong without a word of it on the command line.
  const variables = exitCode <= CONFIG_EXIT ? (host.variables?.taken() ?? []) : [];
  const event = { ...toEvent(error), ...(variables.length > 0 && { variables }) };
  host.log?.record(event);
  const note =
    variables.length > 0 ? `  note: options from the environment: ${variables.join(', ')}\n` : '';
  if (isJson) showEvent(host, event);
  // As quiet as a program that SIGPIPE ends: `ls X | head` shows what it was asked for.
  else if (!(error instanceof ReaderGoneError)) showMessage(host, text + note);
  return exitCode;
}

/** The highest exit code of what a person gave: the command line, or a configuration. */
const CONFIG_EXIT = 3;

export type ErrorReport = { readonly text: string; readonly exitCode: number };

/** Most problems shown, more than a person fixes at once; `validate -o json` has all. */
const SHOWN_PROBLEMS = 100;

/** Depth at which chains of causes are cut: deeper ones come from a loop. */
const MAX_DEPTH = 16;

/**
 * Describes a foreseen failure by the path of its causes, both values and the hint, and any other
 * failure as a bug, with its stack. Secrets are masked in both.
 */
export function describeError(error: unknown, redaction: Redaction): ErrorReport {
  const { mask } = redaction;
  if (error instanceof ConfigProblems) return describeProblems(error, redaction);
  const foreseen = findForeseen(error);
  if (foreseen === undefined) return describeBug(error, redaction);
  const said = listCauses(error).join(': ');
  const lines = [
    `error: ${said} [${foreseen.code}]`,
    ...listValues(foreseen, said),
    ...listHints(error, foreseen),
  ].map((line) => indentLines(line, redaction));
  return { text: `${mask(lines.join('\n'))}\n`, exitCode: foreseen.exitCode };
}

/** Formats both values; a value alone is left out if the sentence has it. */
function listValues({ expected, found }: SealiftError, said: string): readonly string[] {
  const isSaid = expected === undefined && found !== undefined && said.includes(found);
  return [
    ...(expected === undefined ? [] : [`  expected: ${expected}`]),
    ...(found === undefined || isSaid ? [] : [`  found:    ${found}`]),
  ];
}

/** Describes a failure as an event, for `-o json` and `--log-format json`. */
function toEvent(error: unknown): object {
  const foreseen = findForeseen(error);
  return {
    type: 'error',
    code: foreseen?.code ?? 'bug',
    message: listCauses(error).join(': '),
    exitCode: foreseen?.exitCode ?? 1,
    expected: foreseen?.expected,
    found: foreseen?.found,
    hint: findHint(error),
    causes: listChain(error).map(describeLink),
    ...(error instanceof ConfigProblems && { problems: error.problems }),
    ...(foreseen === undefined && error instanceof Error && { stack: error.stack }),
  };
}

/** Describes one failure of a chain of causes, with its own code, values and hint. */
function describeLink(link: unknown): Readonly<Record<string, unknown>> {
  const message = link instanceof Error ? link.message || link.name : String(link);
  if (!(link instanceof SealiftError)) {
    const code = link instanceof Error && 'code' in link ? String(link.code) : undefined;
    return { code, message };
  }
  const { code, expected, found, hint } = link;
  return { code, message, expected, found, hint };
}

function describeProblems(error: ConfigProblems, { mask }: Redaction): ErrorReport {
  const { problems } = error;
  const more = problems.length - SHOWN_PROBLEMS;
  const text = [
    ...problems.slice(0, SHOWN_PROBLEMS).map(formatProblem),
    ...(more > 0 ? [`and ${more} more ${more === 1 ? 'problem' : 'problems'}`] : []),
    `error: ${error.message} [${error.code}]`,
  ];
  return { text: `${mask(text.join('\n'))}\n`, exitCode: error.exitCode };
}

function describeBug(error: unknown, { mask }: Redaction): ErrorReport {
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
  const text = `bug: ${stack}\n  hint: report this with the command line and the version\n`;
  return { text: mask(text), exitCode: 1 };
}

/** Finds the outermost foreseen failure of the chain, which decides code and exit code. */
function findForeseen(error: unknown): SealiftError | undefined {
  return listChain(error).find((link) => link instanceof SealiftError);
}

const findHint = (error: unknown): string | undefined =>
  listChain(error)
    .map((link) => (link instanceof SealiftError ? link.hint : undefined))
    .find((hint) => hint !== undefined);

/** Formats the hint; a failure without one is explained by its code. An interruption needs no explanation. */
function listHints(error: unknown, { code }: SealiftError): readonly string[] {
  const hint = findHint(error);
  if (hint === undefined && error instanceof InterruptedError) return [];
  return [`  hint: ${hint ?? `run ${formatCommand('explain', code)}`}`];
}

/** Lists the sentences of the chain, outermost first, without repetitions. */
function listCauses(error: unknown): readonly string[] {
  const sentences = listChain(error).map((link) =>
    link instanceof Error ? link.message || link.name : String(link),
  );
  return sentences.filter((text, index) => {
    const news = NETWORK_CODE.exec(text)?.[1] ?? text;
    return !sentences.slice(0, index).some((earlier) => earlier.includes(news));
  });
}

/** Node's sentence about a connection, such as `connect ECONNREFUSED 127.0.0.1:1`: its code is all that it adds. */
const NETWORK_CODE = /^(?:connect|read|write|getaddrinfo) (E[A-Z]+)(?: \S+)?$/;

function listChain(error: unknown): readonly unknown[] {
  const chain: unknown[] = [];
  let link: unknown = error;
  while (link !== undefined && link !== null && chain.length < MAX_DEPTH) {
    chain.push(link);
    link = link instanceof Error ? link.cause : undefined;
  }
  return chain;
}

/** Converts commander's error about a command line to a UsageError with a code and a hint. */
export function toUsageError({ code, message }: CommanderError): UsageError {
  const [text = '', guess] = message.replace(/^error: /, '').split('\n');
  const meant = /^\(Did you mean (.*)\?\)$/.exec(guess ?? '')?.[1];
  return new UsageError(codeOf(code), describe(code, text), {
    hint: meant === undefined ? 'run the command with --help' : `did you mean "${meant}"?`,
  });
}

/** Derives the code: `commander.unknownOption` becomes `usage.unknown-option`. */
const codeOf = (code: string): string =>
  code === 'commander.help'
    ? 'usage.no-command'
    : code
        .replace(/^commander\./, 'usage.')
        .replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

/** Describes the failure: without a command, commander prints the help and has no sentence for it. */
const describe = (code: string, text: string): string =>
  code === 'commander.help' ? 'no command is given' : text;
