import { CST, Lexer } from 'yaml';

/** Where in a YAML text (1.2.2) a hole stands: it decides how a value is written there. */
export type HoleContext =
  | { readonly kind: 'double-quoted' | 'single-quoted' | 'comment' }
  /** In a `|` or `>`; `isFirst` where its indentation is told by what is put in. */
  | { readonly kind: 'block'; readonly isFirst: boolean }
  | {
      readonly kind: 'plain';
      /** Within `[]` or `{}`, where commas and brackets have a meaning. */
      readonly isFlow: boolean;
      /** Whether the hole is the whole node, so that a list or a mapping may be put in. */
      readonly isWhole: boolean;
      /** Whether nothing else stands on its line. */
      readonly isAlone: boolean;
    };

type Lexeme = {
  readonly start: number;
  readonly source: string;
  readonly type: string;
  readonly isFlow: boolean;
};

/**
 * The contexts of holes.
 *
 * @param text a template with a word in place of each hole
 * @param holes where these words begin and end, ascending
 * @returns for each hole its context, or undefined where no value can be written: in an anchor, say
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

/** Marks of the lexer that stand for no text. */
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

/** What stands behind the head of a block scalar is its text. */
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
