import type { ConfigDocument } from './document.ts';
import type { Report } from './report.ts';
import type { Plain } from './shape.ts';

/**
 * Lenient reading of a document that may break its schema: what has another type counts as absent,
 * because the schema has already said so.
 */
export type View = {
  readonly document: ConfigDocument;
  readonly report: Report;
  text: (path: string) => string | undefined;
  flag: (path: string) => boolean | undefined;
  number: (path: string) => number | undefined;
  /** The paths of a list's items. */
  items: (path: string) => readonly string[];
  /** Where a relative path that stands there begins. */
  directoryOf: (path: string) => string;
};

/** @param directoryOf absent: no value is a path */
export function createView(
  document: ConfigDocument,
  directoryOf: View['directoryOf'] = () => '',
): View {
  const read = (path: string): Plain | undefined => readPath(document.value, path);
  return {
    document,
    directoryOf,
    report: document.report,
    text: (path) => {
      const value = read(path);
      return typeof value === 'string' && value !== '' ? value : undefined;
    },
    flag: (path) => {
      const value = read(path);
      return typeof value === 'boolean' ? value : undefined;
    },
    number: (path) => {
      const value = read(path);
      return typeof value === 'number' ? value : undefined;
    },
    items: (path) => {
      const value = read(path);
      return Array.isArray(value) ? value.map((_, index) => `${path}[${index}]`) : [];
    },
  };
}

/** The texts of `list[].member`, each with its path, without those that are absent. */
export function readTexts(
  view: View,
  list: string,
  member = '',
): readonly { readonly path: string; readonly text: string }[] {
  return view.items(list).flatMap((item) => {
    const path = `${item}${member}`;
    const text = view.text(path);
    return text === undefined ? [] : [{ path, text }];
  });
}

/** The value at a path, undefined where there is none. */
export function readPath(root: Plain, path: string): Plain | undefined {
  let value: Plain | undefined = root;
  for (const part of path.split(/[.[\]]+/).filter((name) => name !== '')) {
    if (value === null || typeof value !== 'object') return undefined;
    value = Object.hasOwn(value, part)
      ? (value as Readonly<Record<string, Plain>>)[part]
      : undefined;
  }
  return value;
}
