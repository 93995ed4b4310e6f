import type { DocumentProblem } from '../../base/errors.ts';
import { groupBy, objectOrEmpty, withoutUndefined } from '../../base/lists.ts';
import { decodeBase64 } from '../../base/text/base64.ts';
import { type Definition, readResourceMembers } from '../../openshift/agent/resource-members.ts';
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
  /** Index among the clusters of a resource that has several. */
  readonly cluster?: number;
};

/** Documents that are resources; others, and faulty ones, are left out: each reader reads its own again. */
export const findResources = (files: readonly SiteFile[]): readonly FoundResource[] =>
  files.flatMap((file) => listHeads(file).map((head) => ({ ...head, file })));

type Head = Omit<FoundResource, 'file'>;

/** By the bytes of a file, which may have the resources of many sites. */
const known = new WeakMap<Uint8Array, readonly Head[]>();

function listHeads(file: SiteFile): readonly Head[] {
  const { bytes } = file;
  const heads =
    known.get(bytes) ??
    cutDocuments(Buffer.from(bytes).toString('utf8')).flatMap((piece) => readHead(file, piece));
  known.set(bytes, heads);
  return heads;
}

function readHead(file: SiteFile, piece: ManifestPiece): readonly Head[] {
  const { kind = '', apiVersion = '', metadata = {} } = readFound({ file, piece }, HEAD).value;
  const { name = '', namespace } = metadata;
  if (kind === '' || name === '') return [];
  return [{ kind, apiVersion, name, piece, ...withoutUndefined({ namespace }) }];
}

/** Reads a document with the lines that it has in its file. */
export const readFound = <S extends Shape>(
  { file, piece }: Pick<FoundResource, 'file' | 'piece'>,
  shape: S,
  publicKeys = PUBLIC_KEYS,
): ConfigDocument<TypeOf<S>> =>
  moveLines(
    decodeYaml({ text: withoutSeparator(piece), file: file.shownAs, publicKeys }, shape),
    piece.line - 1,
  );

/** A resource of a kind that is defined, read strictly along its members. */
export type ReadResource<Spec> = {
  readonly resource: FoundResource;
  readonly document: ConfigDocument<unknown>;
  readonly spec: Spec;
  readonly labels: Readonly<Record<string, unknown>>;
  readonly annotations: Readonly<Record<string, unknown>>;
};

/** @param definition of the kind, to whose members the type of the specification belongs */
export function readDefined<Spec>(
  resource: FoundResource,
  definition: Definition,
): ReadResource<Partial<Spec>> {
  const { file, piece } = resource;
  const source = { text: withoutSeparator(piece), file: file.shownAs };
  const { document, problems } = readResourceMembers(source, definition);
  const { spec, metadata } = objectOrEmpty(document.value);
  const { labels, annotations } = objectOrEmpty(metadata);
  return {
    resource,
    document: moveLines({ ...document, problems }, piece.line - 1),
    spec: objectOrEmpty(spec) as Partial<Spec>,
    labels: objectOrEmpty(labels),
    annotations: objectOrEmpty(annotations),
  };
}

const withoutSeparator = ({ text }: ManifestPiece): string =>
  text.replace(/^---(?![ \t]*[^\s#])[^\n]*/, '');

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

/** The resources that one of them may refer to. */
export type ResourceIndex = {
  /** The first of a kind and a name. */
  readonly find: (kind: string, name: string) => FoundResource | undefined;
  readonly list: (kind: string) => readonly FoundResource[];
  /** Resources that were found or listed so far. */
  readonly used: ReadonlySet<FoundResource>;
};

/** Finds as a resource of a namespace refers: others without a namespace are taken to be in the same one. */
export function indexResources(
  resources: readonly FoundResource[],
  namespace: string | undefined,
): ResourceIndex {
  const near = resources.filter(
    (other) =>
      namespace === undefined || other.namespace === undefined || other.namespace === namespace,
  );
  const byKind = groupBy(near, ({ kind }) => kind);
  const byName = groupBy(near, ({ kind, name }) => `${kind} ${name}`);
  const used = new Set<FoundResource>();
  const use = (found: readonly FoundResource[]): readonly FoundResource[] => {
    for (const each of found) used.add(each);
    return found;
  };
  return {
    find: (kind, name) => use(byName.get(`${kind} ${name}`)?.slice(0, 1) ?? [])[0],
    list: (kind) => use(byKind.get(kind) ?? []),
    used,
  };
}
