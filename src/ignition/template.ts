const HOLE = /\{\{ ([a-z][a-z0-9-]*) \}\}/g;

/**
 * Fills the holes `{{ name }}` of a text. There is no logic and no escaping: who fills a hole knows
 * what stands around it. Go templates (`{{.Id}}`, for a command in a script) are left alone.
 *
 * Template and caller belong together, so a hole without a value, a value without a hole and a
 * misspelt hole are bugs and thrown as such.
 */
export function renderTemplate(text: string, holes: Readonly<Record<string, string>>): string {
  const stray = /\{\{(?![.]| [a-z][a-z0-9-]* \}\})[^\n]{0,20}/.exec(text);
  if (stray) throw new Error(`template has the malformed hole "${stray[0]}"`);
  const unused = new Set(Object.keys(holes));
  const rendered = text.replaceAll(HOLE, (_, name: string) => {
    const value = Object.hasOwn(holes, name) ? holes[name] : undefined;
    if (value === undefined) throw new Error(`template has the hole "${name}" but no value for it`);
    unused.delete(name);
    return value;
  });
  if (unused.size > 0) throw new Error(`template has no hole "${[...unused].join('", "')}"`);
  return rendered;
}
