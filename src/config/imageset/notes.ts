import type { DocumentProblem } from '../../base/errors.ts';
import type { Json } from '../../base/text/json.ts';

/* Words that the imports of all parts of an image set share. */

/** A setting that the import leaves out: a note if the media are the same without it, otherwise a loss. */
export type ImportNote = DocumentProblem;

/** A part of a configuration, with notes on the settings of the image set that it leaves out. */
export type Noted<T> = { readonly value: T; readonly notes: readonly ImportNote[] };

/** Keys of our configuration with the values to write, in the order to write them. */
export type Written = Readonly<Record<string, Json | undefined>>;

export const harmless = (note: ImportNote): ImportNote => ({ ...note, severity: 'note' });

export const isLoss = ({ severity }: ImportNote): boolean => severity !== 'note';
