import { type Document, isScalar } from 'yaml';
import { findYamlExcess, parseDocument } from '../shape/parse-text.ts';

/* Owns the cutting of a manifest into its documents. */

/** A document as the node cuts it out of the file. */
export type ManifestPiece = {
  /** Number of the document, from 1. */
  readonly number: number;
  /** Number of the document's first line in the file, from 1. */
  readonly line: number;
  readonly text: string;
};

/** Kubernetes accepts only blanks and comments after a separator. */
export const SEPARATOR = /^---[ \t]*[^\s#]/;

/**
 * Splits a text like Kubernetes' YAMLReader: before every line that begins with `---`. Unlike in
 * YAML, the text before the first such line is a document, even if it is only a comment.
 */
export function cutDocuments(text: string): readonly ManifestPiece[] {
  if (text.trim() === '') return [];
  const pieces: ManifestPiece[] = [];
  let start = 0;
  let lines: string[] = [];
  const finish = (): void => {
    if (lines.length === 0) return;
    pieces.push({ number: pieces.length + 1, line: start + 1, text: lines.join('') });
    lines = [];
  };
  for (const [index, line] of (text.match(/[^\n]*\n|[^\n]+$/g) ?? []).entries()) {
    if (line.startsWith('---') && lines.length > 0) {
      finish();
      if (!SEPARATOR.test(line)) continue;
    }
    if (lines.length === 0) start = index;
    lines.push(line);
  }
  finish();
  return pieces;
}

/** Options that read a document as Kubernetes does: YAML 1.1, the last of equal keys counts. */
export const PIECE = {
  prettyErrors: false,
  uniqueKeys: false,
  version: '1.1' as const,
  logLevel: 'silent' as const,
};

/** True for a document with no value: it is empty, or has comments alone. */
export const isBlankPiece = ({ text }: ManifestPiece): boolean =>
  !findYamlExcess(text) && isBlank(parseDocument(text, PIECE));

export const isBlank = ({ contents }: Document.Parsed): boolean =>
  contents === null || (isScalar(contents) && contents.value === null);
