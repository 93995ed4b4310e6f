import { IntegrityError } from '../../base/errors.ts';
import type { Json } from '../../base/text/json.ts';

export type JsonObject = Readonly<Record<string, Json | undefined>>;

/** @throws IntegrityError `iso.malformed-json` when `bytes` is not a JSON object; `path` is for its message */
export function parseJsonObject(bytes: Uint8Array, path: string): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (cause) {
    throw new IntegrityError('iso.malformed-json', `${path} is not JSON`, { cause });
  }
  if (isObject(value)) return value;
  throw new IntegrityError('iso.malformed-json', `${path} is not a JSON object`);
}

/** @throws IntegrityError `iso.malformed-json` when the member is there, but no size or offset */
export function readOptionalInteger(
  object: JsonObject,
  key: string,
  path: string,
): number | undefined {
  const value = object[key];
  if (value === undefined) return undefined;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
  throw new IntegrityError(
    'iso.malformed-json',
    `${path} has ${JSON.stringify(value)} at "${key}", which is not a valid number of bytes`,
  );
}

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
