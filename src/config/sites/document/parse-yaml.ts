import { Composer, isScalar, Lexer, Parser } from 'yaml';
import type { CST, Document, LineCounter } from 'yaml';

/**
 * Nodes within nodes. The YAML library composes them by recursion and has no limit but the stack, and
 * near the end of the stack V8 may end the whole process: no file needs a tenth of this.
 */
const MOST_NESTED = 250;

/** Deeper nested than any file needs; nothing of it was composed. */
export class NestedTooDeep extends Error {
  /** Where it became too deep. */
  readonly offset: number;

  constructor(offset: number) {
    super(`nodes are nested more than ${MOST_NESTED} levels deep`);
    this.offset = offset;
  }
}

/**
 * The documents of a YAML text, one of which there is always; what is wrong stands in each one's
 * `errors` and `warnings`.
 *
 * @throws NestedTooDeep
 */
export const parseYaml = (text: string, lines?: LineCounter): readonly Document.Parsed[] => [
  // Every scalar as text: what it means depends on what its place wants.
  ...new Composer({ prettyErrors: false, uniqueKeys: false, schema: 'failsafe' }).compose(
    readTokens(text, lines),
    true,
    text.length,
  ),
];

/** A document is complete, and so known to be flat enough, before it is given on. */
function* readTokens(text: string, lines: LineCounter | undefined): Generator<CST.Token> {
  const parser = new Parser(lines?.addNewLine);
  lines?.addNewLine(0);
  for (const lexeme of new Lexer().lex(text)) {
    yield* parser.next(lexeme);
    if (parser.stack.length > MOST_NESTED) throw new NestedTooDeep(parser.offset);
  }
  yield* parser.end();
}

/** As after a marker at the end of a file. */
export const isEmptyDocument = ({ contents }: Document.Parsed): boolean =>
  contents === null || (isScalar(contents) && contents.range[0] === contents.range[1]);
