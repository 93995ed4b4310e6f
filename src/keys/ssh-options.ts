import { appendSuggestion } from '../base/text/words.ts';

/* Owns the options before a key in authorized_keys (sshd(8), "AUTHORIZED_KEYS FILE FORMAT"). */

const FLAGS: readonly string[] = [
  'agent-forwarding',
  'port-forwarding',
  'pty',
  'user-rc',
  'x11-forwarding',
];

const ALONE = ['cert-authority', 'restrict', 'touch-required', 'verify-required'];

const WITH_VALUE = [
  'command',
  'environment',
  'expiry-time',
  'from',
  'permitlisten',
  'permitopen',
  'principals',
  'tunnel',
];

const NAMES = [...FLAGS, ...FLAGS.map((name) => `no-${name}`), 'no-touch-required', ...ALONE];

/**
 * Reads the options at the start of a line, up to the first blank outside of quotation marks. sshd
 * ignores the whole line if it does not know one of them.
 */
export function readOptions(
  line: string,
): { readonly rest: string } | { readonly problem: string } {
  const text = /^(?:"(?:\\.|[^"\\])*"|[^\s"])+/.exec(line)?.[0] ?? '';
  const end = line[text.length];
  if (end === '"') return { problem: 'has a quotation mark that is not closed' };
  const rest = line.slice(text.length).trimStart();
  // A word alone is more probably a key without its type than an option.
  if (rest === '') return { rest };
  const options = text.match(/(?:"(?:\\.|[^"\\])*"|[^,"])+/g) ?? [];
  const problem = options.map(judgeOption).find((each) => each !== undefined);
  return problem === undefined ? { rest } : { problem };
}

function judgeOption(option: string): string | undefined {
  const [, written = '', value] = /^([^=]*)(?:=([^]*))?$/.exec(option) ?? [];
  const name = written.toLowerCase();
  if (NAMES.includes(name)) {
    return value === undefined ? undefined : `gives the option ${name} a value`;
  }
  if (WITH_VALUE.includes(name)) {
    return value !== undefined && /^"[^]*"$/.test(value)
      ? undefined
      : `needs quotation marks around the value of the option ${name}`;
  }
  if (!/^[a-z0-9-]{1,40}$/.test(name)) return `begins neither with a key type nor with an option`;
  return `has an unknown key type or option "${name}"${appendSuggestion(name, [...NAMES, ...WITH_VALUE])}`;
}
