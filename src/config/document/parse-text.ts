import { isUtf8 } from 'node:buffer';
import { isScalar, LineCounter } from 'yaml';
import type { Document } from 'yaml';
import { composeDocuments } from '../../base/text/yaml.ts';
import { readYamlTokens, YamlExcess } from '../../base/text/document-bounds.ts';

/** Of a megabyte of text that is as dense as any site's; what is composed takes 100 MiB at most. */
const MOST_LEXEMES = 250_000;

/** A YAML or JSON text as nodes with positions. Every scalar has its written text only. */
export type ParsedText = {
  readonly text: string;
  readonly lines: LineCounter;
  /** Empty where nothing could be parsed. */
  readonly document: Document.Parsed;
  /** What makes the text not valid YAML, in the order of the text. */
  readonly faults: readonly TextFault[];
};

export type TextFault = { readonly offset: number; readonly problem: string };

/** Parses one document; a second one is a fault unless there is nothing in it. */
export function parseText(source: string | Uint8Array): ParsedText {
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
    const [document, ...others] = compose(text, lines);
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

const compose = (text: string, lines = new LineCounter()): ReturnType<typeof composeDocuments> =>
  composeDocuments(readYamlTokens(text, { lines, most: MOST_LEXEMES }), text.length, {
    prettyErrors: false,
    uniqueKeys: false,
    // Every scalar as text: what it means depends on what its place wants.
    schema: 'failsafe',
  });

const [EMPTY] = compose('');

/** As after a marker at the end of a file. */
const isEmptyDocument = ({ contents }: Document.Parsed): boolean =>
  contents === null || (isScalar(contents) && contents.range[0] === contents.range[1]);

/** What is wrong with a YAML text, in words, by the code of the YAML library's error. */
export const explainYaml = (code: string): string =>
  WORDS[code] ?? code.toLowerCase().replaceAll('_', ' ');

const WORDS: Readonly<Record<string, string>> = {
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
