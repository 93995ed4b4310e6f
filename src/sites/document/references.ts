import { rememberSecret } from '../../base/text/redact.ts';
import type { ConfigDocument } from '../../shape/document.ts';
import type { DocumentProblem } from '../../base/errors.ts';
import { readSecretSource, type SecretReading } from '../../config/secrets.ts';

/** Where `file:` and `env:` look. */
export type ReferenceSource = {
  /**
   * Where relative paths begin, for tables at the template. An archive has no folder on this machine, and
   * its author may be somebody else: it cannot name files.
   */
  readonly directory?: string | undefined;
  readonly env: NodeJS.ProcessEnv;
};

/** What references came to, by key: part of what is made from a document. Secrets are among them. */
export type References = ReadonlyMap<string, string>;

/** Keys whose value may stand in a file or a variable. */
const KEYS = ['pullSecret', 'sshKey', 'additionalTrustBundle', 'ignitionConfigOverride'];

/**
 * Replaces `file:PATH` and `env:NAME` in a document by what they name. What is written in the document
 * itself stays as it is. No problem shows a value.
 */
export function resolveReferences<Value>(
  document: ConfigDocument<Value>,
  { directory, env }: ReferenceSource,
): { readonly document: ConfigDocument<Value>; readonly references: References } {
  const references = new Map<string, string>();
  const problems: DocumentProblem[] = [];
  const members = new Map<string, unknown>(Object.entries(document.value ?? {}));
  for (const key of KEYS) {
    const text = members.get(key);
    if (typeof text !== 'string') continue;
    noteSecret(key, text);
    if (!/^(?:file|env):/.test(text)) continue;
    const reading = readReference(text, { directory, env });
    if (reading.kind === 'value') {
      references.set(key, reading.value);
      noteSecret(key, reading.value);
    } else {
      const hint = reading.kind === 'absent' ? reading.hint : undefined;
      problems.push(document.report(key, reading.problem, { hint }));
    }
  }
  return {
    references,
    document: {
      ...document,
      value: { ...document.value, ...Object.fromEntries(references) },
      problems: [...document.problems, ...problems],
    },
  };
}

function readReference(text: string, { directory, env }: ReferenceSource): SecretReading {
  return directory === undefined && text.startsWith('file:')
    ? IN_ARCHIVE
    : readSecretSource(text, { directory: directory ?? '', env });
}

const IN_ARCHIVE = {
  kind: 'absent',
  problem: 'a file: reference cannot be used inside an archive',
  hint: 'write env:NAME, or unpack the archive',
} as const;

const noteSecret = (key: string, value: string): void => {
  if (key === 'pullSecret') rememberSecret(value);
};
