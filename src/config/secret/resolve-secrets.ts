import { append } from '../../base/lists.ts';
import { rememberSecret } from '../../base/text/redact.ts';
import { checkPullSecret, checkSshKey } from './check-secrets.ts';
import type { DocumentProblem } from '../../base/errors.ts';
import { readSecretSource, SECRET_PATHS, type SecretPath } from './secret-source.ts';
import type { View } from '../../shape/document.ts';

/** The values of a configuration's secrets, and what stands against them. */
export type Secrets = {
  readonly values: ReadonlyMap<SecretPath, string>;
  readonly problems: readonly DocumentProblem[];
  /** References to a file or variable that this machine does not have. */
  readonly absent: readonly DocumentProblem[];
};

/** Reads `file:` and `env:` references and checks the values. No problem shows a value. */
export function resolveSecrets(view: View, env: NodeJS.ProcessEnv): Secrets {
  const values = new Map<SecretPath, string>();
  const problems: DocumentProblem[] = [];
  const absent: DocumentProblem[] = [];
  const { report } = view;
  for (const path of SECRET_PATHS) {
    const text = view.text(path);
    if (text === undefined) continue;
    const reading = readSecretSource(text, { directory: view.directoryOf(path), env });
    if (reading.kind === 'absent') {
      absent.push(report(path, reading.problem, { hint: reading.hint }));
    } else if (reading.kind === 'refused') {
      problems.push(report(path, reading.problem));
    } else {
      values.set(path, reading.value);
      if (path !== 'sshKey') rememberSecret(reading.value);
      append(
        problems,
        checkValue(path, reading.value).map((problem) => report(path, problem)),
      );
    }
  }
  return { values, problems, absent };
}

function checkValue(path: SecretPath, value: string): readonly string[] {
  if (path === 'userCorePass') {
    return /[\r\n]/.test(value) ? ['must be one line'] : [];
  }
  if (path !== 'sshKey') return checkPullSecret(value);
  const problem = checkSshKey(value);
  return problem === undefined ? [] : [problem];
}
