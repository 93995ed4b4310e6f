import { join } from 'node:path';
import { digestOf, hexOf } from '../../base/digest.ts';

type Place = {
  /** Absolute path, or the address of an object. */
  readonly output: string;
  readonly workDir: string;
};

/** Whether an output is an artifact in a registry. */
export const isArtifactOutput = (output: string): boolean => output.startsWith('oci://');

/** Whether an output is elsewhere: an object in an object store, or an artifact. */
export const isObjectOutput = (output: string): boolean =>
  output.startsWith('s3://') || isArtifactOutput(output);

/** The record of its upload. */
export const recordPathOf = ({ output, workDir }: Place): string =>
  join(workDir, 'uploads', hexOf(digestOf(output)).slice(0, 16));

/** What builds of one output exclude each other with. */
export const lockPathOf = (place: Place): string =>
  `${isObjectOutput(place.output) ? recordPathOf(place) : place.output}.lock`;

/** What the disk of this machine takes: of an object only what is kept of it. */
export const diskOf = (place: Place): { readonly output: string; readonly isThere: boolean } => {
  const isThere = isObjectOutput(place.output);
  return { output: isThere ? recordPathOf(place) : place.output, isThere };
};
