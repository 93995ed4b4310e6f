import { join } from 'node:path';
import { digestOf, hexOf } from '../base/digest.ts';
import { ConfigError, UsageError } from '../base/errors.ts';
import { parseReference, type Reference } from '../registry/index.ts';

/*
 * The places that an ISO is written to: a file, a block device, an object in an object store, an
 * artifact in a registry. A layout comes in with what opens its extents; a named ISO with its
 * checksum and report leaves, and all four are read again by ranges. This room must not know what
 * is on a medium: what recognizes one and reads its index is an argument.
 */

type Place = {
  /** Absolute path, or the address of an object. */
  readonly output: string;
  readonly workDir: string;
};

/** True if an output is an artifact in a registry. */
export const isArtifactOutput = (output: string): boolean => output.startsWith('oci://');

/** True if an output is elsewhere: an object in an object store, or an artifact. */
export const isObjectOutput = (output: string): boolean =>
  output.startsWith('s3://') || isArtifactOutput(output);

/** The record of its upload. */
export const recordPathOf = ({ output, workDir }: Place): string =>
  join(workDir, 'uploads', hexOf(digestOf(output)).slice(0, 16));

/** Lock by which builds of one output exclude each other. */
export const lockPathOf = (place: Place): string =>
  `${isObjectOutput(place.output) ? recordPathOf(place) : place.output}.lock`;

/** The files on the disk of this machine: for an object, only its records. */
export const diskOf = (place: Place): { readonly output: string; readonly isThere: boolean } => {
  const isThere = isObjectOutput(place.output);
  return { output: isThere ? recordPathOf(place) : place.output, isThere };
};

const SCHEME = 'oci://';

/** @throws UsageError `usage.artifact` */
export function parseArtifactAddress(text: string): Reference {
  if (!text.startsWith(SCHEME)) throw malformed(text, `it does not begin with ${SCHEME}`);
  try {
    return parseReference(text.slice(SCHEME.length));
  } catch (cause) {
    if (cause instanceof ConfigError) throw malformed(text, cause.message);
    throw cause;
  }
}

/** A push address must have a name that stays: a tag. */
export function parseTaggedAddress(text: string): Reference & { readonly tag: string } {
  const reference = parseArtifactAddress(text);
  const { tag, digest } = reference;
  if (tag !== undefined && digest === undefined) return { ...reference, tag };
  throw malformed(text, 'a push needs a tag, and takes no digest');
}

const malformed = (text: string, reason: string): UsageError =>
  new UsageError('usage.artifact', `"${text}" is not the address of an artifact: ${reason}`, {
    expected: 'oci://REGISTRY/REPOSITORY:TAG',
    found: text,
  });
