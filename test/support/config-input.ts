import { createRedaction } from '../../src/base/text/redact.ts';
import type { ConfigInput } from '../../src/config/load.ts';

/** A configuration of one file whose text is at hand. */
export const inputOf = (text: string, path: string, shownAs = path): ConfigInput => ({
  files: [{ path, shownAs, text }],
  settings: [],
  cwd: '/',
  redaction: createRedaction(),
});
