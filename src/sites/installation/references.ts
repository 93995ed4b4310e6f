import type { ConfigDocument, Plain } from '../../config/document/document.ts';
import type { ConfigProblem } from '../../config/document/problem.ts';
import { readSecretSource } from '../../config/secret/secret-source.ts';

/** Where `file:` and `env:` look. */
export type ReferenceSource = { readonly directory: string; readonly env: NodeJS.ProcessEnv };

/** Keys whose value may stand in a file or a variable. */
const KEYS = ['pullSecret', 'sshKey', 'ignitionConfigOverride', 'additionalTrustBundle'];

const REFERENCE = /^(?:file|env):/;

/**
 * The document's members with `file:PATH` and `env:NAME` replaced by what they name. What is written in
 * the document itself stays as it is. No problem shows a value.
 */
export function resolveReferences(
  { value, report, offsetOf }: ConfigDocument,
  source: ReferenceSource,
): { readonly value: Plain; readonly problems: readonly ConfigProblem[] } {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return { value, problems: [] };
  }
  const members = { ...(value as Readonly<Record<string, Plain>>) };
  const problems: ConfigProblem[] = [];
  for (const path of KEYS) {
    const text = members[path];
    if (typeof text !== 'string' || !REFERENCE.test(text)) continue;
    const reading = readSecretSource(text, source);
    if (reading.kind === 'value') {
      members[path] = reading.value;
      continue;
    }
    const hint = reading.kind === 'absent' ? reading.hint : undefined;
    problems.push(report.atOffset(offsetOf(path), { path, problem: reading.problem, hint }));
  }
  return { value: members, problems };
}
