import { stringify } from 'yaml';
import type { DocumentProblem } from '../../base/errors.ts';
import type { MadeValue } from '../../shape/document.ts';
import type { SiteFile, SiteInput } from '../site.ts';
import type { ResourceIndex } from './find.ts';

/* Owns the making of files of a site out of values of resources. */

/** The files of a site, made of resources that an index found. */
export type Made = {
  readonly files: readonly SiteFile[];
  readonly problems: readonly DocumentProblem[];
  readonly warnings: readonly DocumentProblem[];
  readonly index: ResourceIndex;
  readonly installMembers?: SiteInput['installMembers'];
  /** Release image of the ClusterImageSet that the resources refer to. */
  readonly release?: string | undefined;
  /** The files beside the resources that it takes; absent: all. */
  readonly beside?: readonly SiteFile[];
};

/** A file of a site; its text, which few read, is written when it is asked for. */
export const makeFile = (path: string, made: MadeValue): SiteFile => ({
  path,
  get bytes() {
    return formatMade(made.value);
  },
  shownAs: made.placeOf('').document.file,
  made,
});

/** YAML that means the same to readers of YAML 1.1. */
export const formatMade = (value: unknown): Uint8Array =>
  Buffer.from(stringify(value, { version: '1.1', lineWidth: 0 }));
