/** A character as JSON and YAML (1.2.2, 5.7) escape it: `\u` and four hex digits, for each of its UTF-16 units. */
export const escapeCharacter = (character: string): string =>
  Array.from(
    { length: character.length },
    (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`,
  ).join('');
