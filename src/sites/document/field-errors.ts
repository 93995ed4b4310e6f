import { maskUserInfo } from '../../config/document/masked-lines.ts';

// The shapes of the Kubernetes field errors that the peers print behind the path.

export const required = (why: string): string => `Required value: ${why}`;

/** The value as Go's `%q` has it, nearly; long values are cut, secrets of URLs masked. */
export const invalid = (value: string, why: string): string =>
  `Invalid value: ${quote(value)}: ${why}`;

export const unsupported = (value: string, supported: readonly string[]): string =>
  `Unsupported value: ${quote(value)}: supported values: ${supported.map(quote).join(', ')}`;

export const tooMany = (count: number, most: number): string =>
  `Too many: ${count}: must have at most ${most} items`;

const MAX_SHOWN = 200;
const MAX_VALUE = 1000;

function quote(value: string): string {
  // Not even a part: a suffix could reveal a password.
  if (value.length > MAX_VALUE) return `"[${value.length} characters]"`;
  const shown = maskUserInfo(value);
  return JSON.stringify(shown.length > MAX_SHOWN ? `${shown.slice(0, MAX_SHOWN)}...` : shown);
}
