import {
  ConfigError,
  DifferenceError,
  DiskError,
  IntegrityError,
  InterruptedError,
  RegistryError,
  ToolError,
  UsageError,
} from '../../../base/errors.ts';

/** What was thrown, on its way to another thread: a clone of an error keeps little but its message. */
export type Failure =
  | { readonly kind: 'value'; readonly value: unknown }
  | {
      readonly kind: 'error';
      readonly name: string;
      readonly message: string;
      readonly stack: string | undefined;
      /** Codes, hints, system calls: texts and numbers. */
      readonly details: Readonly<Record<string, unknown>>;
      readonly cause?: Failure;
    };

const OURS: readonly { readonly name: string; readonly prototype: object }[] = [
  ...[UsageError, ConfigError, RegistryError, IntegrityError],
  ...[ToolError, DiskError, DifferenceError, InterruptedError],
];

/** Of errors, with their causes; any other value must be one that can be cloned. */
export function encodeFailure(thrown: unknown): Failure {
  if (!(thrown instanceof Error)) return { kind: 'value', value: thrown };
  const { name, message, stack, cause } = thrown;
  const plain = Object.entries(thrown).filter(([, value]) => typeof value !== 'object');
  return {
    ...{ kind: 'error', name, message, stack, details: Object.fromEntries(plain) },
    ...(cause !== undefined && { cause: encodeFailure(cause) }),
  };
}

/** An error of the same class, if it is one of ours; `decodeFailure(encodeFailure(error))` is told as `error` is. */
export function decodeFailure(failure: Failure): unknown {
  if (failure.kind === 'value') return failure.value;
  const { name, message, stack, details, cause } = failure;
  const options = cause === undefined ? undefined : { cause: decodeFailure(cause) };
  const error = new Error(message, options);
  const ours = OURS.find((each) => each.name === name);
  if (ours) Object.setPrototypeOf(error, ours.prototype);
  return Object.assign(error, details, { name, stack });
}
