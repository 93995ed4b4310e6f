import { isUtf8 } from 'node:buffer';
// eslint-disable-next-line no-restricted-imports -- this file parses it
import * as yaml from 'yaml';
import { type CST, type Document, Lexer, Parser, LineCounter, isScalar } from 'yaml';
import { withoutUndefined } from '../base/lists.ts';

/* Owns the use of the YAML parser, and the bounds on YAML texts. */

/**
 * Options of the YAML parser. The library makes an error for each fault of a text, and V8 a stack
 * for each error: half a megabyte of quotes took five seconds. Here no error has a stack.
 *
 * Input whose cost grows with the square of its size is not read, either. A key that is a collection is
 * written out again with the anchors of all others (8,000 of them took minutes), and the keys of `!!omap` are
 * compared with each other. Neither JSON nor Kubernetes has such keys or such maps.
 *
 * Numbers of base 60 are not read, because Go's parser does not have them either: 52:54:00:12:34:56
 * is an address.
 */
const CHEAP = {
  resolveKnownTags: false,
  customTags: (tags: yaml.Tags): yaml.Tags => [
    'binary',
    ...tags.filter((tag) => !isOfOrder(tag) && !isOfBase60(tag)),
  ],
} as const;
const OF_TEXT_KEYS = { ...CHEAP, stringKeys: true } as const;

const isOfOrder = (tag: yaml.Tags[number]): boolean =>
  typeof tag === 'object' && /:(?:omap|pairs|set)$/.test(tag.tag);

const isOfBase60 = (tag: yaml.Tags[number]): boolean =>
  typeof tag === 'object' && 'format' in tag && tag.format === 'TIME';

function withoutStacks<Value>(compose: () => Value): Value {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 0;
  try {
    return compose();
  } finally {
    Error.stackTraceLimit = limit;
  }
}

/** Parses a text; its errors do not quote the lines of the text, which may have secrets. */
export const parse = (text: string, options: ParseOptions = {}): unknown =>
  withoutStacks(
    () => yaml.parse(text, { ...OF_TEXT_KEYS, prettyErrors: false, ...options }) as unknown,
  );

export const parseDocument = ((text, options) =>
  withoutStacks(() =>
    yaml.parseDocument(text, { ...OF_TEXT_KEYS, ...options }),
  )) as typeof yaml.parseDocument;

export const parseAllDocuments = ((text, options) =>
  withoutStacks(() =>
    yaml.parseAllDocuments(text, { ...OF_TEXT_KEYS, ...options }),
  )) as typeof yaml.parseAllDocuments;

/** The documents of tokens; there is always at least one. `size` is the size of their text. */
export const composeDocuments = (
  tokens: Iterable<CST.Token>,
  size: number,
  options: ComposerOptions,
): readonly [Document.Parsed, ...Document.Parsed[]] =>
  withoutStacks(
    () =>
      [...new yaml.Composer({ ...CHEAP, ...options }).compose(tokens, true, size)] as unknown as [
        Document.Parsed,
      ],
  );

type ParseOptions = yaml.ParseOptions &
  yaml.DocumentOptions &
  yaml.SchemaOptions &
  yaml.ToJSOptions;
type ComposerOptions = NonNullable<ConstructorParameters<typeof yaml.Composer>[0]>;

/**
 * Levels of nesting. The YAML library composes nodes by recursion, with no limit except the stack,
 * and near the end of the stack V8 may end the whole process. No file needs a tenth of this.
 */
const MOST_NESTED = 250;

/** Composed, they take a quarter of a gigabyte; the manifests of a whole product have a fifth of them. */
const MOST_LEXEMES_BOUNDS = 500_000;

/**
 * Visits of nodes, while aliases are resolved and counted: the library walks through a whole document for an
 * alias, and again for each alias within its target. Fourteen kilobytes took nine seconds.
 */
const MOST_VISITS = 50_000_000;

/** The fault of a text that is too large or too deep to be written by hand; no value was composed from it. */
export class YamlExcess extends Error {
  /** Offset at which it became too much. */
  readonly offset: number;

  constructor(problem: string, offset: number) {
    super(problem);
    this.offset = offset;
  }
}

/**
 * The tokens of a YAML text, for a composer. A document is complete, and thus known to be within
 * bounds, before it is passed on.
 *
 * @param options.most lexemes; one takes up to half a kilobyte when it is composed
 * @param options.hasOwnAliases true if the caller resolves aliases, and not the library
 * @throws YamlExcess
 */
export function* readYamlTokens(text: string, options: TokenOptions = {}): Generator<CST.Token> {
  const { lines } = options;
  const parser = new Parser(lines?.addNewLine);
  lines?.addNewLine(0);
  const count = createCount(options);
  for (const lexeme of new Lexer().lex(text)) {
    yield* parser.next(lexeme);
    if (parser.stack.length > MOST_NESTED)
      throw new YamlExcess('this is nested too deep', parser.offset);
    const problem = count(lexeme);
    if (problem !== undefined) throw new YamlExcess(problem, parser.offset);
  }
  yield* parser.end();
}

/** Counts lexemes, and reports when they are too many. */
function createCount({
  most = Infinity,
  hasOwnAliases = false,
}: TokenOptions): (lexeme: string) => string | undefined {
  let lexemes = 0;
  let aliases = 0;
  return (lexeme) => {
    if (++lexemes > most) return 'there are too many values';
    if (lexeme.startsWith('*') && !hasOwnAliases) aliases++;
    return countVisits(aliases, lexemes) > MOST_VISITS ? 'there are too many aliases' : undefined;
  };
}

type TokenOptions = {
  readonly lines?: LineCounter;
  readonly most?: number;
  readonly hasOwnAliases?: boolean;
};

const countVisits = (aliases: number, nodes: number): number => aliases ** 2 * nodes;

/**
 * Finds a reason why a text is unfit for the YAML library; call it before the text is parsed.
 * Small texts that cannot be nested deep take no time.
 */
export function findYamlExcess(text: string, lines?: LineCounter): YamlExcess | undefined {
  const isSmall = text.length <= MOST_LEXEMES_BOUNDS && !mayHaveManyAliases(text);
  if (isSmall && !mayBeDeep(text)) return undefined;
  try {
    const tokens = readYamlTokens(text, {
      ...withoutUndefined({ lines }),
      most: MOST_LEXEMES_BOUNDS,
    });
    while (tokens.next().done !== true);
    return undefined;
  } catch (error) {
    if (error instanceof YamlExcess) return error;
    throw error;
  }
}

const mayHaveManyAliases = (text: string): boolean =>
  countVisits(text.split('*').length - 1, text.length) > MOST_VISITS;

/**
 * True if a text may be nested deep. Flow collections need brackets; block collections need marks,
 * or spaces before them, on one line.
 */
function mayBeDeep(text: string): boolean {
  if ((text.match(/[[{]/g)?.length ?? 0) > MOST_NESTED / 2) return true;
  // A pattern for long lines would take a frame of the stack for each of their characters.
  const long = text.split('\n').filter(({ length }) => length >= 100);
  return long.some((line) => (line.match(/[ \t:]|[-?](?=\s)/g)?.length ?? 0) > MOST_NESTED / 4);
}

/** Lexemes of a megabyte of text as dense as that of any site; the composed values take 100 MiB at most. */
const MOST_LEXEMES = 250_000;

/** A YAML or JSON text as nodes with positions. Every scalar has its written text only. */
export type ParsedText = {
  readonly text: string;
  readonly lines: LineCounter;
  /** Empty if nothing could be parsed. */
  readonly document: Document.Parsed;
  /** Faults that make the text invalid YAML, in the order of the text. */
  readonly faults: readonly TextFault[];
};

export type TextFault = { readonly offset: number; readonly problem: string };

/** Parses one document; a second one is a fault unless it is empty. @param most lexemes */
export function parseText(source: string | Uint8Array, most = MOST_LEXEMES): ParsedText {
  const lines = new LineCounter();
  const refuse = (text: string, fault: TextFault): ParsedText => ({
    text,
    lines,
    document: EMPTY,
    faults: [fault],
  });
  const isBytes = typeof source !== 'string';
  if (isBytes && !isUtf8(source)) return refuse('', { offset: 0, problem: 'this is not UTF-8' });
  const text = isBytes ? new TextDecoder().decode(source) : source;
  try {
    const [document, ...others] = compose(text, most, lines);
    const second = others.find((other) => !isEmptyDocument(other));
    const faults = [...document.errors, ...document.warnings]
      .map(({ code, pos }) => ({ offset: pos[0], problem: explainYaml(code) }))
      .concat(second ? [{ offset: second.range[0], problem: explainYaml('MULTIPLE_DOCS') }] : []);
    return { text, lines, document, faults };
  } catch (error) {
    if (!(error instanceof YamlExcess)) throw error;
    return refuse(text, { offset: error.offset, problem: error.message });
  }
}

const compose = (
  text: string,
  most: number,
  lines = new LineCounter(),
): ReturnType<typeof composeDocuments> =>
  composeDocuments(readYamlTokens(text, { lines, most }), text.length, {
    prettyErrors: false,
    uniqueKeys: false,
    // Every scalar as text: its meaning depends on the type that its place expects.
    schema: 'failsafe',
  });

const [EMPTY] = compose('', MOST_LEXEMES);

/** True if the document is empty, for example after a marker at the end of a file. */
const isEmptyDocument = ({ contents }: Document.Parsed): boolean =>
  contents === null || (isScalar(contents) && contents.range[0] === contents.range[1]);

/** The words for a fault of a YAML text, by the code of the YAML library's error. */
export const explainYaml = (code: string): string =>
  WORDS[code] ?? code.toLowerCase().replaceAll('_', ' ');

const WORDS: Readonly<Record<string, string>> = {
  DUPLICATE_KEY: 'a key is written twice',
  NON_STRING_KEY: 'a key must be text',
  BAD_INDENT: 'the indentation does not fit the lines above',
  TAB_AS_INDENT: 'a tab is used for indentation; only spaces are allowed',
  MULTIPLE_DOCS: 'a second document begins here; the file may have only one',
  MISSING_CHAR: 'a closing quote, bracket, comma or colon is missing',
  MULTILINE_IMPLICIT_KEY: 'a key spans more than one line',
  BLOCK_AS_IMPLICIT_KEY: 'the value contains a second colon; put the value in quotes',
  BAD_SCALAR_START: 'a value may not start with this character; put it in quotes',
  BAD_ALIAS: 'this alias has no anchor',
  BAD_DQ_ESCAPE: 'this escape does not exist in double quotes; use single quotes',
  TAG_RESOLVE_FAILED: 'this tag has no meaning here',
  UNEXPECTED_TOKEN: 'unexpected content',
  IMPOSSIBLE: 'unexpected content',
};
