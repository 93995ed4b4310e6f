/** A character as JSON and YAML (1.2.2, 5.7) escape it: `\u` and four hex digits. */
export const escapeCharacter = (character: string): string =>
  `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
