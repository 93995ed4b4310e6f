/**
 * What a foreseen failure carries besides its sentence: a stable code that programs may match, both
 * values, and one imperative sentence that says what to do.
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

/** Bytes are not what their digest, size or format says. */
export class IntegrityError extends SealiftError {
  readonly exitCode = 5;
}

/** A foreign program is missing or failed. */
export class ToolError extends SealiftError {
  readonly exitCode = 6;
}

/** The disk is full, read-only, too small, or in use by another build. */
export class DiskError extends SealiftError {
  readonly exitCode = 7;
}

/** Verification or comparison found differences. */
export class DifferenceError extends SealiftError {
  readonly exitCode = 8;
}

/** An import is done, but its result lacks something of what it was made from. */
export class LossError extends SealiftError {
  readonly exitCode = 9;
}

/** SIGINT (130) or SIGTERM (143) asked us to stop. */
export class InterruptedError extends SealiftError {
  readonly exitCode: number;
  readonly signal: 'SIGINT' | 'SIGTERM';

  constructor(signal: 'SIGINT' | 'SIGTERM') {
    super('interrupted', `interrupted by ${signal}`);
    this.signal = signal;
    this.exitCode = signal === 'SIGINT' ? 130 : 143;
  }
}

/** Whether an error is the system's, with one of these codes. */
export const isErrno = (error: unknown, ...codes: readonly string[]): boolean =>
  error instanceof Error && 'code' in error && codes.includes(String(error.code));
