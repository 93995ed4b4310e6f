const SECRET_KEY =
  /^(\s*(?:- )?\s*["']?[\w.-]*(?:secret|pass|token|auth|sshkey)[\w.-]*["']?\s*:)(.*)$/i;
const SECRET_TEXT = /auths?\\*["']\s*:|PRIVATE KEY/;
const REFERENCE = /^\s*["']?(?:file|env):[^\s"']+["']?\s*(?:#.*)?$/;
const NEXT_KEY = /^(\s*)(?:- )?[A-Za-z][\w.-]*\s*:(?:\s|$)/;
const MASK = '[redacted]';

/**
 * The lines of a configuration file with every secret value masked, however broken the YAML is: this
 * looks at the text alone. A value ends where the next key of the same or a lower level begins;
 * `file:` and `env:` references are no secrets and stay.
 */
export function maskLines(text: string): readonly string[] {
  let secretIndent: number | undefined;
  return text.split(/\r\n|\n|\r/).map((line) => {
    const next = NEXT_KEY.exec(line);
    if (secretIndent !== undefined && (!next || (next[1] ?? '').length > secretIndent)) {
      return line.trim() === '' ? line : MASK;
    }
    secretIndent = undefined;
    const key = SECRET_KEY.exec(line);
    if (key) {
      const value = key[2] ?? '';
      if (REFERENCE.test(value)) return line;
      secretIndent = /^\s*/.exec(line)?.[0].length ?? 0;
      return `${key[1] ?? ''} ${MASK}`;
    }
    return SECRET_TEXT.test(line) ? MASK : line;
  });
}
