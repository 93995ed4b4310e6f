const SECRET_KEY =
  /^(?<key>(?<indent>\s*)(?:- )?\s*["']?[\w.-]*(?:secret|pass|token|auth|sshkey)[\w.-]*["']?\s*:)(?<value>.*)$/i;
const SECRET_TEXT = /auths?\\*["']\s*:|PRIVATE KEY/;
const REFERENCE = /^\s*["']?(?:file|env):[^\s"']+["']?\s*(?:#.*)?$/;
const NEXT_KEY = /^(?<indent>\s*)(?:- )?[A-Za-z][\w.-]*\s*:(?:\s|$)/;
const MASK = '[redacted]';

/**
 * The lines of a configuration file with every secret value masked, however broken the YAML is: this
 * looks at the text alone. A value ends where the next key of the same or a lower level begins;
 * `file:` and `env:` references are no secrets and stay.
 */
export function maskLines(text: string): readonly string[] {
  let secretIndent: number | undefined;
  return text.split(/\r\n|\n|\r/).map((line) => {
    if (secretIndent !== undefined && !endsValue(line, secretIndent)) {
      return line.trim() === '' ? line : MASK;
    }
    const found = findSecret(line);
    secretIndent = found?.indent;
    return found?.masked ?? line;
  });
}

function findSecret(
  line: string,
): { readonly masked: string; readonly indent?: number } | undefined {
  const groups = SECRET_KEY.exec(line)?.groups;
  if (!groups) return SECRET_TEXT.test(line) ? { masked: MASK } : undefined;
  const { key = '', indent = '', value = '' } = groups;
  return REFERENCE.test(value) ? undefined : { masked: `${key} ${MASK}`, indent: indent.length };
}

function endsValue(line: string, secretIndent: number): boolean {
  const indent = NEXT_KEY.exec(line)?.groups?.['indent'];
  return indent !== undefined && indent.length <= secretIndent;
}
