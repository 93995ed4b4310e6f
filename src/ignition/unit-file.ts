/* systemd.syntax(7) and systemd.service(5), as far as commands need it. */

/** The contents of a unit and its drop-ins. */
export type UnitFile = {
  /** Values by section and key, such as `Service.Type`; an empty value forgets those before it. */
  readonly values: ReadonlyMap<string, readonly string[]>;
  /** Lines that begin as a section and do not end as one: systemd refuses the file. */
  readonly broken: readonly string[];
};

/** Reads a unit and its drop-ins, in the order in which systemd reads them. */
export function readUnitFile(texts: readonly string[]): UnitFile {
  const values = new Map<string, string[]>();
  const lines = texts.map(listLines);
  for (const { name, value } of lines.flatMap(listSettings)) {
    const known = values.get(name) ?? [];
    if (value === '') known.length = 0;
    else known.push(value);
    values.set(name, known);
  }
  const broken = lines.flat().filter((line) => line.startsWith('[') && !line.endsWith(']'));
  return { values, broken };
}

type Setting = { readonly name: string; readonly value: string };

/** systemd ignores a line without a key, and one before the first section. */
function listSettings(lines: readonly string[]): readonly Setting[] {
  let section = '';
  return lines.flatMap((line) => {
    if (line.startsWith('[')) section = line.replaceAll(/^\[|\]$/g, '');
    const at = line.indexOf('=');
    if (at <= 0 || section === '' || line.startsWith('[')) return [];
    return [{ name: `${section}.${line.slice(0, at).trim()}`, value: line.slice(at + 1).trim() }];
  });
}

/** Lines without comments, which may stand between the parts of a line that goes on. */
function listLines(text: string): readonly string[] {
  const kept = text.split(/\r?\n/).filter((line) => !/^\s*[#;]/.test(line));
  const joined = kept.join('\n').replaceAll(/\\\n/g, ' ').split('\n');
  return joined.map((line) => line.trim()).filter((line) => line !== '');
}

const WORD = /(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\\.|[^\s"'\\])+/g;

/** Programs that the values of an `Exec` key start, without quotes and without systemd's prefixes. */
export const listPrograms = (values: readonly string[]): readonly string[] =>
  values.flatMap((value) => {
    const words = value.match(WORD) ?? [];
    return words
      .filter((word, at) => word !== ';' && (at === 0 || words[at - 1] === ';'))
      .map((word) => word.replaceAll(/["']/g, '').replace(/^[-@:+!|]+/, ''));
  });
