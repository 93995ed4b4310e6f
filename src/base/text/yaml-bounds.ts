import { Lexer, Parser, type CST, type LineCounter } from 'yaml';

/**
 * Nodes within nodes. The YAML library composes them by recursion and has no limit but the stack, and
 * near the end of the stack V8 may end the whole process: no file needs a tenth of this.
 */
const MOST_NESTED = 250;

/** Of half a gigabyte when it is composed; the manifests of a whole product have a tenth of this. */
const MOST_LEXEMES = 1_000_000;

/** A text that nobody wrote by hand; no value was composed of it. */
export class YamlExcess extends Error {
  /** Where it became too much. */
  readonly offset: number;

  constructor(problem: string, offset: number) {
    super(problem);
    this.offset = offset;
  }
}

/**
 * The tokens of a YAML text, for a composer. A document is complete, and so known to be within
 * bounds, before it is given on.
 *
 * @param options.most lexemes; one takes up to half a kilobyte when it is composed
 * @throws YamlExcess
 */
export function* readYamlTokens(
  text: string,
  { lines, most = Infinity }: { readonly lines?: LineCounter; readonly most?: number } = {},
): Generator<CST.Token> {
  const parser = new Parser(lines?.addNewLine);
  lines?.addNewLine(0);
  let lexemes = 0;
  for (const lexeme of new Lexer().lex(text)) {
    yield* parser.next(lexeme);
    if (parser.stack.length > MOST_NESTED)
      throw new YamlExcess('this is nested too deep', parser.offset);
    if (++lexemes > most) throw new YamlExcess('there are too many values', parser.offset);
  }
  yield* parser.end();
}

/**
 * What makes a text unfit for the YAML library, if anything does: ask before it is parsed. Small
 * texts that cannot be nested deep take no time.
 */
export function findYamlExcess(text: string, lines?: LineCounter): YamlExcess | undefined {
  if (text.length <= MOST_LEXEMES && !mayBeDeep(text)) return undefined;
  try {
    const tokens = readYamlTokens(text, { ...(lines && { lines }), most: MOST_LEXEMES });
    while (tokens.next().done !== true);
    return undefined;
  } catch (error) {
    if (error instanceof YamlExcess) return error;
    throw error;
  }
}

/** Flow collections need brackets; block collections marks, or spaces before them, on one line. */
function mayBeDeep(text: string): boolean {
  if ((text.match(/[[{]/g)?.length ?? 0) > MOST_NESTED / 2) return true;
  // A pattern for long lines would take a frame of the stack for each of their characters.
  const long = text.split('\n').filter(({ length }) => length >= 100);
  return long.some((line) => (line.match(/[ \t]|[-?:](?=\s)/g)?.length ?? 0) > MOST_NESTED / 4);
}
