/*
 * This file owns keyfiles, the profiles of NetworkManager as text
 * (https://networkmanager.dev/docs/api/latest/nm-settings-keyfile.html).
 */

/** A connection profile of NetworkManager: the name of its file, and its text. */
export type Keyfile = { readonly name: string; readonly content: string };

/** `key=value` pairs below `[name]`, in their order. */
export type Section = { readonly name: string; readonly entries: readonly KeyfileEntry[] };
export type KeyfileEntry = readonly [key: string, value: string];

/**
 * The text of a profile as the agent-based installer writes it: every profile connects automatically and
 * takes precedence over those that the system makes, and a blank line separates sections.
 */
export const formatKeyfile = (sections: readonly Section[]): string =>
  sections
    .map(({ name, entries }) => {
      const lines = name === 'connection' ? connectAlways(entries) : entries;
      return `[${name}]\n${lines.map(([key, value]) => `${key}=${value}\n`).join('')}`;
    })
    .join('\n');

/** Escapes a value of a keyfile (GLib, GKeyFile): a reader would drop a leading space. */
export const escapeText = (text: string): string =>
  text.replaceAll('\\', '\\\\').replace(/^ /, '\\s');

/** Reads the sections of a profile that nmstate made. */
export function parseKeyfile(content: string): readonly Section[] {
  const sections: { name: string; entries: KeyfileEntry[] }[] = [];
  for (const line of content.split(/\r?\n/)) {
    const [, header] = /^\[(.*)\]\s*$/.exec(line) ?? [];
    if (header !== undefined) sections.push({ name: header, entries: [] });
    const at = line.indexOf('=');
    if (header !== undefined || at < 1 || /^\s*[#;]/.test(line)) continue;
    sections.at(-1)?.entries.push([line.slice(0, at).trim(), line.slice(at + 1).trim()]);
  }
  return sections;
}

/** Brings a profile that nmstate made into the form of `formatKeyfile`. */
export const normaliseKeyfile = ({ name, content }: Keyfile): Keyfile => ({
  name,
  content: formatKeyfile(parseKeyfile(content)),
});

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
