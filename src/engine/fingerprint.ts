import { createHmac } from 'node:crypto';
import { formatCanonicalJson, type Json } from '../base/text/json.ts';
import { digestOf, type Digest } from '../base/digest.ts';
import type { Sealed, StageValue } from './stage.ts';

export type FingerprintOptions = {
  readonly stage: string;
  readonly inputs: object;
  /** Digest of the program; absent for what outlives it. */
  readonly program?: Digest;
  /** Without it, nobody can tell a secret from its fingerprint by trying. Absent where none is sealed. */
  readonly sealKey?: Uint8Array;
};

/**
 * A digest of everything that a stage's result depends on. Of a file count its size and digest, not where
 * it is; of a secret, a keyed digest; of bytes, their digest.
 *
 * @throws TypeError for what is not a plain value
 */
export function fingerprintOf({ stage, inputs, program, sealKey }: FingerprintOptions): Digest {
  const value = describe(inputs as StageValue, sealKey);
  return digestOf(formatCanonicalJson({ stage, inputs: value, program }));
}

function describe(value: StageValue, key: Uint8Array | undefined): Json | undefined {
  if (value === null || typeof value !== 'object') return describeScalar(value);
  if (value instanceof Uint8Array) return { bytes: digestOf(value) };
  if (isSealed(value)) {
    if (!key) throw new TypeError('a sealed value needs a key');
    return { sealed: createHmac('sha256', key).update(value.reveal()).digest('hex') };
  }
  if (Array.isArray(value)) {
    return (value as readonly StageValue[]).map((item) => describe(item, key) ?? null);
  }
  return describeObject(value as Readonly<Record<string, StageValue>>, key);
}

function describeScalar(value: StageValue): Json | undefined {
  if (typeof value === 'function') throw new TypeError('a stage takes values, not functions');
  return value as Json | undefined;
}

function describeObject(
  value: Readonly<Record<string, StageValue>>,
  key: Uint8Array | undefined,
): Json | undefined {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    throw new TypeError('a stage takes plain values, not instances of classes');
  }
  const isFile = value['kind'] === 'file';
  const counted = Object.entries(value).filter(([name]) => !isFile || name !== 'path');
  return Object.fromEntries(counted.map(([name, member]) => [name, describe(member, key)]));
}

const isSealed = (value: object): value is Sealed =>
  'reveal' in value && typeof value.reveal === 'function';
