/** What is wrong with a YAML text, in words, by the code of the YAML library's error. */
export const explainYaml = (code: string): string =>
  WORDS[code] ?? code.toLowerCase().replaceAll('_', ' ');

const WORDS: Readonly<Record<string, string>> = {
  BAD_INDENT: 'the indentation does not fit the lines above',
  TAB_AS_INDENT: 'a tab stands where only spaces may indent',
  MULTIPLE_DOCS: 'a second document begins here; only one may stand in the file',
  MISSING_CHAR: 'a closing quote, bracket, comma or colon is missing',
  MULTILINE_IMPLICIT_KEY: 'a key goes over more than one line',
  BLOCK_AS_IMPLICIT_KEY: 'a second colon stands in the value; put the value in quotes',
  BAD_SCALAR_START: 'a value may not start with this character; put it in quotes',
  BAD_ALIAS: 'this alias has no anchor',
  BAD_DQ_ESCAPE: 'this escape does not exist in double quotes; use single quotes',
  TAG_RESOLVE_FAILED: 'this tag has no meaning here',
  UNEXPECTED_TOKEN: 'nothing may stand here',
  IMPOSSIBLE: 'nothing may stand here',
};
