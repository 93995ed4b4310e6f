const KEY = /^(?<start>(?<indent>\s*)(?:- )?\s*["']?(?<name>[\w.-]+)["']?\s*:)(?<value>.*)$/;
const SECRET_NAME = /secret|pass|token|auth|sshkey|ignitionconfig/i;
const SECRET_TEXT = /auths?\\*["']\s*:|PRIVATE KEY|(?:secret|pass|token)\w*\\*["']?\s*:/i;
const REFERENCE = /^\s*["']?(?:file|env):[^\s"']+["']?\s*(?:#.*)?$/;
const NEXT_KEY = /^(?<indent>\s*)(?:- )?[A-Za-z][\w.-]*\s*:(?:\s|$)/;
const MASK = '[redacted]';

/**
 * The lines of a configuration file with every secret value masked, however broken the YAML is: this
 * looks at the text alone. A key that nobody knows may be a misspelt secret, so its value is masked
 * too. A value ends where the next key of the same or a lower level begins; `file:` and `env:`
 * references are not secrets and stay.
 *
 * @param knownKeys in lower case
 */
export function maskLines(text: string, knownKeys: ReadonlySet<string>): readonly string[] {
  let secretIndent: number | undefined;
  return text.split(/\r\n|\n|\r/).map((line) => {
    if (secretIndent !== undefined && !endsValue(line, secretIndent)) {
      return line.trim() === '' ? line : MASK;
    }
    const found = findSecret(line, knownKeys);
    secretIndent = found?.indent;
    return found?.masked ?? line;
  });
}

function findSecret(
  line: string,
  knownKeys: ReadonlySet<string>,
): { readonly masked: string; readonly indent?: number } | undefined {
  const key = parseKey(line);
  if (key === undefined || isPublic(key.name, knownKeys)) {
    return SECRET_TEXT.test(line) ? { masked: MASK } : undefined;
  }
  if (REFERENCE.test(key.value)) return undefined;
  const indent = key.indent.length;
  if (key.value.trim() !== '') return { masked: `${key.start} ${MASK}`, indent };
  // Nothing to mask here, but the lines below may hold the value.
  return SECRET_NAME.test(key.name) ? { masked: line, indent } : undefined;
}

const isPublic = (name: string, knownKeys: ReadonlySet<string>): boolean =>
  knownKeys.has(name.toLowerCase()) && !SECRET_NAME.test(name);

type KeyLine = Readonly<Record<'start' | 'indent' | 'name' | 'value', string>>;

const parseKey = (line: string): KeyLine | undefined =>
  KEY.exec(line)?.groups as KeyLine | undefined;

function endsValue(line: string, secretIndent: number): boolean {
  const indent = NEXT_KEY.exec(line)?.groups?.['indent'];
  return indent !== undefined && indent.length <= secretIndent;
}

/**
 * User and password of URLs, however broken the URL is: up to the last @ of the word. Before the @ of
 * a digest stands none.
 */
export const maskUserInfo = (text: string): string =>
  text
    .replaceAll(/\/\/\S*@/g, '//[redacted]@')
    .replaceAll(/[^\s"'=,/@]+:[^\s"'/@]*@(?!sha\d+:)/g, '[redacted]@');
