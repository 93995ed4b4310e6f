import { rememberSecret } from '../../base/text/redact.ts';
import type { ConfigProblem } from '../../config/document/problem.ts';
import { readSecretSource } from '../../config/secret/secret-source.ts';
import type { SiteDocument } from './site-document.ts';
import type { INSTALL_CONFIG } from './site-shapes.ts';
import type { SiteFile } from '../site.ts';

type InstallDocument = SiteDocument<typeof INSTALL_CONFIG>;

/** Keys of install-config.yaml whose value may stand in a file or a variable. */
const KEYS = ['pullSecret', 'sshKey', 'additionalTrustBundle'] as const;

export type ResolvedInstall = {
  readonly document: InstallDocument;
  /** What references came to, by key: part of what a site is made from. Secrets are among them. */
  readonly references: ReadonlyMap<string, string>;
};

/**
 * Replaces `file:PATH` and `env:NAME` by what they name. Relative paths begin at the folder of the
 * file that has the reference, for tables at the template. An archive has no folder on this machine,
 * and its author may be somebody else: it cannot name files. No problem shows a value.
 */
export function resolveSiteReferences(
  document: InstallDocument,
  { directory }: Pick<SiteFile, 'directory'>,
  env: NodeJS.ProcessEnv,
): ResolvedInstall {
  const references = new Map<string, string>();
  const problems: ConfigProblem[] = [];
  const { value, report } = document;
  for (const key of KEYS) {
    const text = value[key];
    noteSecret(key, text);
    if (text === undefined || !/^(?:file|env):/.test(text)) continue;
    if (directory === undefined && text.startsWith('file:')) {
      problems.push(report(key, IN_ARCHIVE, { hint: 'write env:NAME, or unpack the archive' }));
      continue;
    }
    const reading = readSecretSource(text, { directory: directory ?? '', env });
    if (reading.kind === 'value') {
      references.set(key, reading.value);
      noteSecret(key, reading.value);
    } else {
      const hint = reading.kind === 'absent' ? reading.hint : undefined;
      problems.push(report(key, reading.problem, { hint }));
    }
  }
  return {
    references,
    document: {
      ...document,
      value: { ...value, ...Object.fromEntries(references) },
      problems: [...document.problems, ...problems],
    },
  };
}

const noteSecret = (key: string, value = ''): void => {
  if (key === 'pullSecret') rememberSecret(value);
};

const IN_ARCHIVE = 'a file: reference cannot be used inside an archive';
