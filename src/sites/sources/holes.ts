import { CST, Lexer, isCollection, isMap, isScalar, Scalar } from 'yaml';
import { escapeCharacter } from '../../base/text/words.ts';
import { parseDocument, findYamlExcess } from '../../shape/parse-text.ts';

/* Owns the YAML contexts of holes, and the form of a value in each. */

/** The place of a hole in a YAML text (1.2.2): it decides how a value is written there. */
export type HoleContext =
  | { readonly kind: 'double-quoted' | 'single-quoted' | 'comment' }
  /** In a `|` or `>`; `isFirst` if the inserted text decides the indentation. */
  | { readonly kind: 'block'; readonly isFirst: boolean }
  | {
      readonly kind: 'plain';
      /** Within `[]` or `{}`, in which commas and brackets have a meaning. */
      readonly isFlow: boolean;
      /** True if the hole is the whole node, so that a list or a mapping may be put in. */
      readonly isWhole: boolean;
      /** True if the hole is alone on its line. */
      readonly isAlone: boolean;
    };

type Lexeme = {
  readonly start: number;
  readonly source: string;
  readonly type: string;
  readonly isFlow: boolean;
};

type Plain = Extract<HoleContext, { readonly kind: 'plain' }>;

/**
 * Finds the contexts of holes in `text`, which has a word in place of each hole; `holes` ascend. A context is
 * undefined if no value can be written there: in an anchor, for example.
 */
export function findContexts(
  text: string,
  holes: readonly { readonly start: number; readonly end: number }[],
): readonly (HoleContext | undefined)[] {
  const lexemes = splitText(text);
  let at = 0;
  return holes.map(({ start, end }) => {
    while (at + 1 < lexemes.length && (lexemes[at + 1]?.start ?? 0) <= start) at++;
    const lexeme = lexemes[at];
    return lexeme && describe(lexeme, { text, start, end });
  });
}

/** Normalizes line breaks to YAML's, and drops them at the end. */
export const normalizeValue = (text: string): string =>
  text.replaceAll(/\r\n|\r/g, '\n').replace(/(?<!\n)\n+$/, '');

/**
 * Explains why a value, in the form of `normalizeValue`, cannot be put into a hole and stay within it, or
 * undefined. Double quotes allow every value.
 */
export function findContextFault(
  value: string,
  context: HoleContext,
  indent: string,
): string | undefined {
  switch (context.kind) {
    case 'double-quoted':
    case 'comment':
      return undefined;
    case 'single-quoted':
      return value.includes('\n') ? 'has a line break' : undefined;
    case 'block':
      return context.isFirst && /^\s/.test(value) ? 'begins with white space' : undefined;
    case 'plain':
      return isFit(value, context, indent) ? undefined : 'cannot be a plain YAML text';
  }
}

/** Takes a value in the form of `normalizeValue`, and the white space at the beginning of the hole's line. */
export function writeValue(value: string, context: HoleContext, indent: string): string {
  switch (context.kind) {
    case 'double-quoted':
      // JSON's escapes are also YAML's (1.2.2, 5.7), and YAML 1.1 breaks lines at these three.
      return JSON.stringify(value)
        .slice(1, -1)
        .replaceAll(/[\x85\u2028\u2029]/g, escapeCharacter);
    case 'single-quoted':
      return value.replaceAll("'", "''");
    case 'comment':
      return value.replaceAll('\n', ' ');
    case 'block':
    case 'plain':
      return indentValue(value, indent);
  }
}

export const indentValue = (value: string, indent: string): string =>
  value
    .split('\n')
    .map((line, index) => (index === 0 || line === '' ? line : `${indent}${line}`))
    .join('\n');

/** Marks of the lexer that represent no text. */
const MARKS = ['doc-mode', 'flow-error-end', 'scalar'];
const DEPTHS: ReadonlyMap<string, number> = new Map([
  ['flow-map-start', 1],
  ['flow-seq-start', 1],
  ['flow-map-end', -1],
  ['flow-seq-end', -1],
]);

function splitText(text: string): Lexeme[] {
  const lexemes: Lexeme[] = [];
  let [start, depth, isScalar, isBlock] = [0, 0, false, false];
  for (const source of new Lexer().lex(text)) {
    const found = CST.tokenType(source) ?? '';
    if (!isScalar && MARKS.includes(found)) {
      isScalar = found === 'scalar';
      continue;
    }
    const type = isScalar ? nameScalar(isBlock) : found;
    depth += DEPTHS.get(type) ?? 0;
    isBlock = type === 'block-scalar-header' || (isBlock && !isScalar);
    lexemes.push({ start, source, type, isFlow: depth > 0 });
    start += source.length;
    isScalar = false;
  }
  return lexemes;
}

/** The text after the head of a block scalar is its content. */
const nameScalar = (isBlock: boolean): string => (isBlock ? 'block' : 'plain');

type Place = { readonly text: string; readonly start: number; readonly end: number };

function describe(lexeme: Lexeme, { text, start, end }: Place): HoleContext | undefined {
  switch (lexeme.type) {
    case 'double-quoted-scalar':
      return { kind: 'double-quoted' };
    case 'single-quoted-scalar':
      return { kind: 'single-quoted' };
    case 'comment':
      return { kind: 'comment' };
    case 'block':
      return { kind: 'block', isFirst: text.slice(lexeme.start, start).trim() === '' };
    case 'plain': {
      const before = text.slice(text.lastIndexOf('\n', start - 1) + 1, start);
      const after = /^[^\r\n]*/.exec(text.slice(end))?.[0] ?? '';
      const isWhole = lexeme.source === text.slice(start, end);
      const isAlone = before.trim() === '' && /^[ \t]*([ \t]#.*)?$/.test(after);
      return { kind: 'plain', isFlow: lexeme.isFlow, isWhole, isAlone };
    }
    default:
      return undefined;
  }
}

function isFit(value: string, context: Plain, indent: string): boolean {
  if (value === '' || isPlain(value, context)) return true;
  // A whole document, such as a manifest, may be anything.
  const isDocument = context.isAlone && indent === '';
  return context.isWhole && (isDocument || isOneNode(value, context));
}

const FLOW_MEANING = /[,[\]{}]|^[?&*!|>'"%@`-]/;
const BLOCK_MEANING = /^[,[\]{}&*!|>'"%@`]|^(\?|-|---|\.\.\.)(\s|$)/;

/** YAML 1.2.2, 7.3.3, and slightly stricter: the value may be a part of a longer text. */
function isPlain(value: string, { isFlow }: Plain): boolean {
  if (/\n|:(\s|$)|(^|\s)#|^\s|\s$/.test(value)) return false;
  return isFlow ? !FLOW_MEANING.test(value) : !BLOCK_MEANING.test(value);
}

/** A quoted text, a list or a mapping; block style only if the node has its own lines. */
function isOneNode(value: string, { isFlow, isAlone }: Plain): boolean {
  if (isStrange(value)) return false;
  if (isAlone && !isFlow) {
    const node = readBetween(`\n  ${indentValue(value, '  ')}`);
    return isCollection(node) || isQuoted(node);
  }
  if (value.includes('\n')) return false;
  const mapping = readBetween(` { k: ${value} }`);
  const node = isMap(mapping) && mapping.items.length === 1 && mapping.get('k', true);
  return (isCollection(node) && node.flow === true) || isQuoted(node);
}

const STRANGE = ['anchor', 'alias', 'doc-start', 'doc-end', 'directive-line', 'directive'];

/** Anchors and documents reach beyond a node. */
const isStrange = (value: string): boolean =>
  findYamlExcess(value) !== undefined ||
  [...new Lexer().lex(value)].some((lexeme) => STRANGE.includes(CST.tokenType(lexeme) ?? ''));

const isQuoted = (node: unknown): boolean =>
  isScalar(node) && (node.type === Scalar.QUOTE_DOUBLE || node.type === Scalar.QUOTE_SINGLE);

/** Reads a node as a parser finds it, if the parser also finds the text before and after it. */
function readBetween(node: string): unknown {
  const options = { uniqueKeys: false, prettyErrors: false, logLevel: 'silent' } as const;
  const { contents, errors } = parseDocument(`a:${node}\nz: end\n`, options);
  if (errors.length > 0 || !isMap(contents) || contents.items.length !== 2) return undefined;
  const [first, last] = contents.items;
  return isScalar(last?.value) && last.value.value === 'end' ? first?.value : undefined;
}
