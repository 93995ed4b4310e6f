import { SealiftError } from '../../base/errors.ts';
import { redact } from '../../base/redact.ts';
import { ConfigProblems, formatProblem } from '../../config/document/problem.ts';

/** Printed: for people on stderr, and the code to end with. */
export type ErrorReport = { readonly text: string; readonly exitCode: number };

/** Deeper chains of causes are cut: they come from a loop. */
const MAX_DEPTH = 16;

/**
 * A foreseen failure as the path of its causes, both values and the hint; anything else as the bug it
 * is, with its stack. URLs lose their secrets either way.
 */
export function describeError(error: unknown): ErrorReport {
  if (error instanceof ConfigProblems) return describeProblems(error);
  const foreseen = findForeseen(error);
  if (foreseen === undefined) return describeBug(error);
  const lines = [
    `error: ${listCauses(error).join(': ')} [${foreseen.code}]`,
    ...(foreseen.expected === undefined ? [] : [`  expected: ${foreseen.expected}`]),
    ...(foreseen.found === undefined ? [] : [`  found:    ${foreseen.found}`]),
    ...(findHint(error) === undefined ? [] : [`  hint: ${findHint(error) ?? ''}`]),
  ];
  return { text: `${redact(lines.join('\n'))}\n`, exitCode: foreseen.exitCode };
}

/** The same as one JSON object on a line, for `-o json` and `--log-format json`. */
export function formatErrorAsJson(error: unknown): string {
  const foreseen = findForeseen(error);
  const event = {
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
  return `${JSON.stringify(event, (_key, value: unknown) =>
    typeof value === 'string' ? redact(value) : value,
  )}\n`;
}

/** One of the failures behind a failure, as it was where it happened. */
function describeLink(link: unknown): Readonly<Record<string, unknown>> {
  const message = link instanceof Error ? link.message || link.name : String(link);
  if (!(link instanceof SealiftError)) {
    const code = link instanceof Error && 'code' in link ? String(link.code) : undefined;
    return { code, message };
  }
  const { code, expected, found, hint } = link;
  return { code, message, expected, found, hint };
}

function describeProblems(error: ConfigProblems): ErrorReport {
  const text = [...error.problems.map(formatProblem), `error: ${error.message} [${error.code}]`];
  return { text: `${redact(text.join('\n'))}\n`, exitCode: error.exitCode };
}

function describeBug(error: unknown): ErrorReport {
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
  const text = `bug: ${stack}\n  hint: report this with the command line and the version\n`;
  return { text: redact(text), exitCode: 1 };
}

/** The outermost foreseen failure decides code and exit code; an abort counts by its reason. */
function findForeseen(error: unknown): SealiftError | undefined {
  return listChain(error).find((link) => link instanceof SealiftError);
}

const findHint = (error: unknown): string | undefined =>
  listChain(error)
    .map((link) => (link instanceof SealiftError ? link.hint : undefined))
    .find((hint) => hint !== undefined);

/** The sentences of the chain, outermost first, without repetitions. */
function listCauses(error: unknown): readonly string[] {
  const sentences = listChain(error).map((link) =>
    link instanceof Error ? link.message || link.name : String(link),
  );
  return sentences.filter(
    (text, index) => !sentences.slice(0, index).some((s) => s.includes(text)),
  );
}

function listChain(error: unknown): readonly unknown[] {
  const chain: unknown[] = [];
  let link: unknown = error;
  while (link !== undefined && link !== null && chain.length < MAX_DEPTH) {
    chain.push(link);
    link = link instanceof Error ? link.cause : undefined;
  }
  return chain;
}
