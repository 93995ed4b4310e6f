import { toPrintable } from './text/words.ts';

/*
 * The foreseen failures of the program, one class for each domain, and the problems of files with
 * their places. Any room may throw these classes; the command line turns them into messages and
 * exit codes. This room must not know any format, command or product.
 */

/**
 * The data of a foreseen failure besides its sentence: a stable code that programs may match, both
 * values, and one imperative sentence with the remedy.
 */
export type ErrorDetails = {
  readonly expected?: string;
  readonly found?: string;
  readonly hint?: string;
  readonly cause?: unknown;
};

/** A foreseen failure. Anything thrown that is not a SealiftError is a bug (exit code 1). */
export abstract class SealiftError extends Error {
  /** Process exit code of this domain (docs/exit-codes.md). */
  abstract readonly exitCode: number;
  /** Stable within a major version, e.g. `registry.unauthorized`. */
  readonly code: string;
  readonly expected: string | undefined;
  readonly found: string | undefined;
  readonly hint: string | undefined;

  constructor(code: string, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = new.target.name;
    this.code = code;
    this.expected = details.expected;
    this.found = details.found;
    this.hint = details.hint;
  }
}

/** The command line asks for something impossible. */
export class UsageError extends SealiftError {
  readonly exitCode = 2;
}

/** The configuration is wrong. */
export class ConfigError extends SealiftError {
  readonly exitCode = 3;
}

/** A registry or another server refuses, is absent, or breaks off for good. */
export class RegistryError extends SealiftError {
  readonly exitCode = 4;
}

/** Bytes do not match their digest, size or format. */
export class IntegrityError extends SealiftError {
  readonly exitCode = 5;
}

/** A foreign program is missing or failed. */
export class ToolError extends SealiftError {
  readonly exitCode = 6;
}

/** The disk is full, read-only, too small, broken or in use by another build, or a limit of the machine is reached. */
export class DiskError extends SealiftError {
  readonly exitCode = 7;
}

/** Verification or comparison found differences. */
export class DifferenceError extends SealiftError {
  readonly exitCode = 8;
}

/** An import is done, but its result lacks something of its source. */
export class LossError extends SealiftError {
  readonly exitCode = 9;
}

/** A medium shows no fault, and not every byte of it could be compared: it has no proof. */
export class UnprovenError extends SealiftError {
  readonly exitCode = 10;
}

/** SIGINT (130) or SIGTERM (143) asked us to stop. */
export class InterruptedError extends SealiftError {
  readonly exitCode: number;
  readonly signal: 'SIGINT' | 'SIGTERM';

  constructor(signal: 'SIGINT' | 'SIGTERM', hint?: string) {
    super('interrupted', `interrupted by ${signal}`, hint === undefined ? {} : { hint });
    this.signal = signal;
    this.exitCode = signal === 'SIGINT' ? 130 : 143;
  }
}

/** The reader of the result went away before the command had its verdict. */
export class ReaderGoneError extends SealiftError {
  /** 128 + SIGPIPE, with which other programs end. */
  readonly exitCode = 141;

  constructor() {
    super('stdout.closed', 'the reader of the result closed the pipe before its end');
  }
}

/** True if an error is the system's, with one of these codes. */
export const isErrno = (error: unknown, ...codes: readonly string[]): boolean =>
  error instanceof Error && 'code' in error && codes.includes(String(error.code));

export type DocumentPlace = {
  /** The file as the user named it, a member of an archive, or a row of a table. */
  readonly file: string;
  /** From 1. */
  readonly line: number;
  /** From 1, in UTF-16 code units. */
  readonly column: number;
  /** Path in the document: `ocpRelease.version`, `operators[0].catalog`; empty for the document. */
  readonly path: string;
  /** The line it means, with secret values masked. */
  readonly lineText: string;
};

/** A file as a whole, or a line of one: a site, a member of an archive, a row of a table. */
export type FilePlace = {
  readonly file: string;
  readonly line?: number;
  readonly path?: string;
};

export type PulledPlace = {
  readonly name: string;
  /** Image by digest. */
  readonly image: string;
};

export type ImagePlace = {
  /** The part that was checked; `lost`: the file ends before it. */
  readonly kind:
    'structure' | 'index' | 'proof' | 'content' | 'lost' | 'registry' | 'bundle' | 'missing';
  /** The file or directory of the ISO. */
  readonly path?: string;
  /** Offset in the ISO, in bytes. */
  readonly offset?: number;
  readonly size?: number;
  /** Names of the images that need the damaged bytes. */
  readonly images?: readonly string[];
};

/**
 * Something that is wrong, or looks wrong, and its place. It holds no secret, and it is printed as
 * JSON as it is: an error prevents the result, a warning is probably a mistake, a note is harmless.
 */
export type Problem<Place = DocumentPlace | FilePlace | ImagePlace | PulledPlace> = Place & {
  readonly severity: 'error' | 'warning' | 'note';
  /** Stable, for programs: `config.unknown-key`. */
  readonly code: string;
  /** A sentence about the place, with both values. */
  readonly problem: string;
  readonly expected?: string;
  readonly found?: string;
  readonly hint?: string;
};

export type DocumentProblem = Problem<DocumentPlace>;
export type FileProblem = Problem<DocumentPlace | FilePlace>;
export type ImageProblem = Problem<ImagePlace>;
export type PulledProblem = Problem<PulledPlace>;

export const isError = ({ severity }: Pick<Problem, 'severity'>): boolean => severity === 'error';

/** Everything that is wrong with one configuration file: `config.problems`, all at once. */
export class ConfigProblems extends ConfigError {
  readonly problems: readonly DocumentProblem[];

  constructor(file: string, problems: readonly DocumentProblem[]) {
    const count = problems.length === 1 ? '1 problem' : `${problems.length} problems`;
    super('config.problems', `${file} has ${count}`);
    this.problems = problems;
  }
}

/**
 * `file:line:column: path: problem`, the line, a caret below it, the known facts about the values,
 * and the hint if there is one.
 */
export function formatProblem(problem: Problem): string {
  const { severity, expected, found, hint } = problem;
  const mark = isError({ severity }) ? '' : `${severity}: `;
  return [
    formatSentence({ ...problem, problem: `${mark}${problem.problem}` }),
    ...('lineText' in problem ? showLine(problem) : []),
    ...('kind' in problem ? showBytes(problem) : []),
    ...(expected === undefined ? [] : [`  expected ${toPrintable(expected)}`]),
    ...(found === undefined ? [] : [`  found    ${toPrintable(found)}`]),
    ...(hint ? [`  hint: ${toPrintable(hint)}`] : []),
  ].join('\n');
}

/** `file:line:column: path: problem`, for a list of them in one line. */
export const formatSentence = (problem: Problem): string =>
  toPrintable(`${formatPlace(problem)}: ${problem.problem}`);

function formatPlace(problem: Problem): string {
  if ('kind' in problem) return `${problem.kind}: ${problem.path ?? 'image'}`;
  if ('image' in problem) return `${problem.name}: ${problem.image}`;
  const { file, line, path = '' } = problem;
  const column = 'column' in problem ? `:${problem.column}` : '';
  return `${file}${line === undefined ? '' : `:${line}`}${column}${path === '' ? '' : `: ${path}`}`;
}

function showLine(problem: DocumentPlace): readonly string[] {
  const number = String(problem.line);
  const [before, after] = cutLine(problem);
  if ((before + after).trim() === '') return [];
  const caret = before.replaceAll(/[^\t]/g, ' ');
  return [`  ${number} | ${before}${after}`, `  ${' '.repeat(number.length)} | ${caret}^`];
}

/** Columns of a source line around the shown place. */
const SHOWN_COLUMNS = 200;

/**
 * The shown parts of a line before its column and from there on, without characters that command a terminal.
 */
function cutLine({ lineText, column }: DocumentPlace): readonly [string, string] {
  const line = lineText.replace(/\r$/, '');
  const at = Math.min(column - 1, line.length);
  const isLong = line.length > SHOWN_COLUMNS;
  const last = isLong ? line.length - SHOWN_COLUMNS : 0;
  const start = Math.max(0, Math.min(at - SHOWN_COLUMNS / 2, last));
  const end = isLong ? start + SHOWN_COLUMNS : line.length;
  return [
    `${start > 0 ? '...' : ''}${toPrintable(line.slice(start, at))}`,
    `${toPrintable(line.slice(at, end))}${end < line.length ? '...' : ''}`,
  ];
}

const showBytes = ({ offset, size = 1, images }: ImagePlace): readonly string[] => [
  ...(offset === undefined ? [] : [`  bytes ${offset} to ${offset + size - 1}`]),
  ...(images === undefined ? [] : [`  needed by ${formatNames(images)}`]),
];

const SHOWN_NAMES = 20;

/** The first of the names, and the number of the others. */
export function formatNames(names: readonly string[], most = SHOWN_NAMES): string {
  const more = names.length - most;
  return names.slice(0, most).join(', ') + (more > 0 ? ` and ${more} more` : '');
}
