import type { DocumentProblem } from '../../base/errors.ts';

/**
 * Something of an image set that the configuration made of it does not say: a note where the media carry
 * the same without it, else a loss.
 */
export type ImportNote = DocumentProblem;

/** A part of a configuration, and what of the image set it leaves out. */
export type Noted<T> = { readonly value: T; readonly notes: readonly ImportNote[] };

export const harmless = (note: ImportNote): ImportNote => ({ ...note, severity: 'note' });

export const isLoss = ({ severity }: ImportNote): boolean => severity !== 'note';
