import { DiskError, InterruptedError, SealiftError } from '../base/errors.ts';
import type { FileProblem } from '../base/errors.ts';
import { redact } from '../base/text/redact.ts';
import { withoutUndefined } from '../base/lists.ts';

/** Whether it concerns one site: a full disk or an abort concerns all, and a bug everyone. */
export const isOfOneSite = (error: unknown): error is SealiftError =>
  error instanceof SealiftError &&
  !(error instanceof DiskError || error instanceof InterruptedError);

/** What came between a good site and its ISO, as a problem of the site. */
export const findingOfError = (file: string, error: SealiftError): FileProblem => {
  const { code, message, expected, found, hint } = error;
  const values = { expected: expected && redact(expected), found: found && redact(found) };
  return {
    severity: 'error',
    code,
    file,
    problem: redact(`${message} [${code}]`),
    ...withoutUndefined({ ...values, hint }),
  };
};

/** What is allowed beside a site's ISO and yet worth a look. */
export const warnOfFile = (file: string, problem: string, hint?: string): FileProblem => ({
  severity: 'warning',
  code: 'sites.output',
  file,
  problem,
  ...withoutUndefined({ hint }),
});
