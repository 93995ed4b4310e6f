/** RFC 8259: a string, with the colon that makes it the name of a member, or a bracket. */
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?|[{}[\]]/gs;

/**
 * True if an object in a valid JSON text has two members of one name. Parsers silently take the last one; a person
 * who wrote both wanted both.
 */
export function hasRepeatedMember(json: string): boolean {
  const names: Set<string>[] = [];
  for (const [token, colon] of json.matchAll(TOKEN)) {
    if (token === '{' || token === '[') names.push(new Set());
    else if (token === '}' || token === ']') names.pop();
    else if (colon !== undefined) {
      const name = JSON.parse(token.slice(0, -colon.length)) as string;
      if (names.at(-1)?.has(name)) return true;
      names.at(-1)?.add(name);
    }
  }
  return false;
}
