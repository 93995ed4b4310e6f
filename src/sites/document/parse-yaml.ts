import { isScalar } from 'yaml';
import type { Document, LineCounter } from 'yaml';
import { composeDocuments } from '../../base/text/yaml.ts';
import { readYamlTokens } from '../../base/text/document-bounds.ts';

/** Of a megabyte of text that is as dense as any site's; what is composed takes 100 MiB at most. */
const MOST_LEXEMES = 250_000;

type Documents = readonly [Document.Parsed, ...Document.Parsed[]];

/**
 * The documents of a YAML text, one of which there is always; what is wrong stands in each one's
 * `errors` and `warnings`.
 *
 * @throws YamlExcess
 */
export const parseYaml = (text: string, lines?: LineCounter): Documents =>
  composeDocuments(
    readYamlTokens(text, { ...(lines && { lines }), most: MOST_LEXEMES, hasOwnAliases: true }),
    text.length,
    // Every scalar as text: what it means depends on what its place wants.
    { prettyErrors: false, uniqueKeys: false, schema: 'failsafe' },
  );

/** As after a marker at the end of a file. */
export const isEmptyDocument = ({ contents }: Document.Parsed): boolean =>
  contents === null || (isScalar(contents) && contents.range[0] === contents.range[1]);
