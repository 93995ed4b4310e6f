import type { DocumentProblem } from '../../base/errors.ts';
import { groupBy } from '../../base/lists.ts';
import { decodeBase64 } from '../../base/text/base64.ts';
import { decodeYaml, type ConfigDocument } from '../../shape/document.ts';
import { LEFT_OUT, mapping, partial, type Shape, TEXT, type TypeOf } from '../../shape/shape.ts';
import { PUBLIC_KEYS } from '../documents.ts';
import { cutDocuments, type ManifestPiece } from '../manifest-pieces.ts';
import type { SiteFile } from '../site.ts';

/* Owns the finding of resources of Kubernetes among the files of a site, as a GitOps repository has them. */

const HEAD = partial(
  { apiVersion: TEXT, kind: TEXT, metadata: partial({ name: TEXT, namespace: TEXT }, LEFT_OUT) },
  LEFT_OUT,
);

/** A document in a file, known by its kind and name. */
export type FoundResource = {
  readonly kind: string;
  readonly apiVersion: string;
  readonly name: string;
  readonly namespace?: string;
  readonly file: SiteFile;
  readonly piece: ManifestPiece;
};

/** Documents that are resources; others, and faulty ones, are left out: each reader reads its own again. */
export const findResources = (files: readonly SiteFile[]): readonly FoundResource[] =>
  files.flatMap((file) =>
    cutDocuments(Buffer.from(file.bytes).toString('utf8')).flatMap((piece) => {
      const { value } = readFound({ file, piece }, HEAD);
      const { kind = '', apiVersion = '', metadata = {} } = value;
      const { name = '', namespace } = metadata;
      if (kind === '' || name === '') return [];
      const known = { kind, apiVersion, name, file, piece };
      return [{ ...known, ...(namespace !== undefined && { namespace }) }];
    }),
  );

/** Reads a document with the lines that it has in its file. */
export const readFound = <S extends Shape>(
  { file, piece }: Pick<FoundResource, 'file' | 'piece'>,
  shape: S,
  publicKeys = PUBLIC_KEYS,
): ConfigDocument<TypeOf<S>> =>
  moveLines(
    decodeYaml(
      {
        text: piece.text.replace(/^---(?![ \t]*[^\s#])[^\n]*/, ''),
        file: file.shownAs,
        publicKeys,
      },
      shape,
    ),
    piece.line - 1,
  );

/** A document that begins after some lines of its file. */
function moveLines<Value>(document: ConfigDocument<Value>, before: number): ConfigDocument<Value> {
  const move = (problem: DocumentProblem): DocumentProblem => ({
    ...problem,
    line: problem.line + before,
  });
  return {
    ...document,
    problems: document.problems.map(move),
    warnings: document.warnings.map(move),
    report: (...asked) => move(document.report(...asked)),
    lineOf: (path) => document.lineOf(path) + before,
  };
}

const TEXTS = partial({ data: mapping(TEXT), stringData: mapping(TEXT) }, LEFT_OUT);

/** The texts of a Secret or a ConfigMap by their keys; those of a Secret are decoded (core/v1). */
export function readResourceTexts({
  kind,
  file,
  piece,
}: FoundResource): ReadonlyMap<string, string> {
  const { data = {}, stringData = {} } = readFound({ file, piece }, TEXTS).value;
  const decode = (text: string): string =>
    kind === 'Secret' ? (decodeBase64(text)?.toString('utf8') ?? '') : text;
  const decoded = Object.entries(data).map(([key, text]) => [key, decode(text)] as const);
  return new Map([...decoded, ...Object.entries(stringData)]);
}

/** The first resource of a kind and a name. */
export type FindResource = (kind: string, name: string) => FoundResource | undefined;

/** Finds as a resource of a namespace refers: others without a namespace are taken to be in the same one. */
export function indexResources(
  resources: readonly FoundResource[],
  namespace: string | undefined,
): FindResource {
  const near = resources.filter(
    (other) =>
      namespace === undefined || other.namespace === undefined || other.namespace === namespace,
  );
  const groups = groupBy(near, ({ kind, name }) => `${kind} ${name}`);
  return (kind, name) => groups.get(`${kind} ${name}`)?.[0];
}
