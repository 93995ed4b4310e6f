import { ConfigError } from '../../base/errors.ts';
import type { Keyfile } from './custom-values.ts';

/** `key=value` pairs below `[name]`, in their order. */
export type Section = {
  readonly name: string;
  readonly entries: readonly (readonly [key: string, value: string])[];
};

/**
 * The text of a profile as the agent-based installer writes it: every profile connects by itself and wins over those
 * that the system makes, and a blank line follows each section.
 */
export const formatKeyfile = (sections: readonly Section[]): string =>
  sections
    .map(({ name, entries }) => {
      const lines = name === 'connection' ? connectAlways(entries) : entries;
      return `[${name}]\n${lines.map(formatLine).join('')}\n`;
    })
    .join('');

/** @throws ConfigError `nmstate.malformed`: a line break in a value would begin another setting */
function formatLine([key, value]: readonly [string, string]): string {
  const line = `${key}=${value}`;
  if (!/\p{Cc}/u.test(line)) return `${line}\n`;
  throw malformed(`the value of ${JSON.stringify(key)} has control characters`);
}

/** A text in the escapes of a keyfile (GLib, GKeyFile): a reader leaves out blanks in front. */
export const escapeText = (text: string): string =>
  text.replaceAll('\\', '\\\\').replace(/^ /, '\\s');

/** The same for a profile that nmstate made. */
export function normaliseKeyfile({ name, content }: Keyfile): Keyfile {
  const sections: { name: string; entries: [string, string][] }[] = [];
  for (const line of content.split(/\r?\n/)) {
    const [, header] = /^\[(.*)\]\s*$/.exec(line) ?? [];
    if (header !== undefined) sections.push({ name: header, entries: [] });
    const at = line.indexOf('=');
    if (header !== undefined || at < 1 || /^\s*[#;]/.test(line)) continue;
    sections.at(-1)?.entries.push([line.slice(0, at).trim(), line.slice(at + 1).trim()]);
  }
  return { name, content: formatKeyfile(sections) };
}

function connectAlways(entries: Section['entries']): Section['entries'] {
  const others = entries.filter(([key]) => key !== 'autoconnect-priority');
  const connecting = others.map(([key, value]) =>
    key === 'autoconnect' ? ([key, 'true'] as const) : ([key, value] as const),
  );
  const hasIt = connecting.some(([key]) => key === 'autoconnect');
  return [
    ...connecting,
    ...(hasIt ? [] : [['autoconnect', 'true'] as const]),
    ['autoconnect-priority', '1'] as const,
  ];
}

export const malformed = (problem: string, cause?: unknown): ConfigError =>
  new ConfigError('nmstate.malformed', `network configuration has no profiles: ${problem}`, {
    cause,
    hint: 'correct the network configuration',
  });
