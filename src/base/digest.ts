import { createHash } from 'node:crypto';
import { IntegrityError } from './errors.ts';

/** OCI image-spec, descriptor.md "Digests"; only the registered algorithm every registry serves. */
export type Digest = `sha256:${string}`;

const PATTERN = /^sha256:[0-9a-f]{64}$/;

export const isDigest = (text: string): text is Digest => PATTERN.test(text);

/** @throws IntegrityError `digest.malformed` */
function parseDigest(text: string): Digest {
  if (isDigest(text)) return text;
  throw new IntegrityError('digest.malformed', `digest "${text}" is not sha256: and 64 hex digits`);
}

/** The 64 lower-case hex digits of a digest. */
export const hexOf = (digest: Digest): string => digest.slice('sha256:'.length);

export const digestFromHex = (hex: string): Digest => parseDigest(`sha256:${hex}`);

export function digestOf(bytes: Uint8Array | string): Digest {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}
