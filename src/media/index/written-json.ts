import { isObject } from '../../base/lists.ts';
import { findJsonExcess } from '../../base/text/document-bounds.ts';
import type { IntegrityError } from '../../base/errors.ts';
import type { Json } from '../../base/text/json.ts';

/* What reads the JSON files of a medium: any of them may be damaged, or made to harm. */

export type Document = Readonly<Record<string, Json>>;

/** The error of a problem, which is a sentence without its subject. */
type Refuse = (problem?: string, cause?: unknown) => IntegrityError;

/** The text of a JSON file of the medium, which has at most so many values. */
export function checkText(bytes: Uint8Array, values: number, refuse: Refuse): string {
  const excess = findJsonExcess(bytes, { values, depth: 16 });
  if (excess !== undefined) throw refuse(excess);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8');
}

/** Undefined for a text that is not JSON, or not an object. */
export function parseJsonObject(text: string): Document | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? (value as Document) : undefined;
  } catch {
    return undefined;
  }
}

export function parseObject(text: string, refuse: Refuse): Document {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return value as Document;
  } catch (cause) {
    throw refuse('is not JSON', cause);
  }
  throw refuse();
}

/** Whether a value is an object whose members of these names are texts. */
export const isTexts = (value: unknown, keys: readonly string[]): boolean =>
  isObject(value) && keys.every((key) => typeof value[key] === 'string');

export const isTextList = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((item) => typeof item === 'string');
