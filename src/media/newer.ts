import { IntegrityError } from '../base/errors.ts';

/** A newer format than this program knows is not damage, and cannot be judged. */
export class NewerFormatError extends IntegrityError {
  /** @param known the newest format that this program knows */
  constructor(what: string, format: number, known: number) {
    super('medium.newer', `a newer version of sealift made ${what}`, {
      expected: `format ${known}`,
      found: `format ${format}`,
      hint: 'use that version of sealift',
    });
  }
}
