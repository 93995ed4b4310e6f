import type { DocumentProblem } from '../../base/errors.ts';
import { groupBy, objectOrEmpty, withoutUndefined } from '../../base/lists.ts';
import { decodeBase64 } from '../../base/text/base64.ts';
import { type Definition, readResourceMembers } from '../../openshift/agent/resource-members.ts';
import { decodeYaml, type ConfigDocument, type TextSource } from '../../shape/document.ts';
import { type ParsedText, parseText } from '../../shape/parse-text.ts';
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
  /** The document, if there was room for it; else each reader parses it again. */
  readonly parsed?: ParsedText;
  /** Index among the clusters of a resource that has several. */
  readonly cluster?: number;
};

/** The resources of files; faults are those of documents that may be resources, and that nothing can read. */
export type FoundResources = {
  readonly resources: readonly FoundResource[];
  readonly faults: readonly DocumentProblem[];
};

/** Leaves out documents of other kinds. */
export function findResources(files: readonly SiteFile[]): FoundResources {
  const room = { left: MOST_PARSED };
  const found = files.map((file) => ({ file, ...listHeads(file, room) }));
  return {
    resources: found.flatMap(({ file, heads }) => heads.map((head) => ({ ...head, file }))),
    faults: found.flatMap(({ faults }) => faults),
  };
}

/** Characters of the documents that stay parsed: a site has some ten thousand, a folder of many sites millions. */
const MOST_PARSED = 128 * 1024;

type Room = { left: number };
type Head = Omit<FoundResource, 'file'>;
type ReadHead = {
  readonly head?: Head;
  readonly parsed?: ParsedText | undefined;
  readonly faults: readonly DocumentProblem[];
};
type Heads = { readonly heads: readonly Head[]; readonly faults: readonly DocumentProblem[] };

/** By the bytes of a file, which may have the resources of many sites. */
const known = new WeakMap<Uint8Array, Heads>();

function listHeads(file: SiteFile, room: Room): Heads {
  const { bytes } = file;
  const before = known.get(bytes);
  if (before) {
    const faults = before.faults.map((fault) => ({ ...fault, file: file.shownAs }));
    return { heads: before.heads, faults };
  }
  const pieces = cutDocuments(Buffer.from(bytes).toString('utf8')).filter(mayBeResource);
  const found = pieces.map((piece) =>
    readHead({ file, piece, parsed: parseText(withoutSeparator(piece)) }, room),
  );
  const faults = found.flatMap((each) => each.faults);
  const heads = found.flatMap(({ head }) => (head ? [head] : []));
  known.set(bytes, { heads, faults });
  return {
    heads: found.flatMap(({ head, parsed }) =>
      head ? [{ ...head, ...withoutUndefined({ parsed }) }] : [],
    ),
    faults,
  };
}

/** False for a text without the key of a kind, in any case; an escape may spell it as well. */
const mayBeResource = ({ text }: ManifestPiece): boolean =>
  text.includes('\\') || text.toLowerCase().includes('kind');

/** A line with the key of a kind. */
const HAS_KIND = /^["']?kind["']?[ \t]*:/m;

function readHead(document: Required<Document>, room: Room): ReadHead {
  const read = readFound(document, HEAD);
  const { kind = '', apiVersion = '', metadata = {} } = read.value;
  const { name = '', namespace } = metadata;
  const { piece } = document;
  if (kind === '' || name === '') {
    return { faults: HAS_KIND.test(piece.text) ? judgeNameless(kind, read) : [] };
  }
  room.left -= piece.text.length;
  const parsed = room.left > 0 ? document.parsed : undefined;
  const head = { kind, apiVersion, name, piece, ...withoutUndefined({ namespace }) };
  return { head, parsed, faults: [] };
}

/** A list of resources needs no name. */
const judgeNameless = (
  kind: string,
  { problems, report }: ConfigDocument<unknown>,
): readonly DocumentProblem[] =>
  problems.length > 0 || ['', 'Kustomization', 'List'].includes(kind)
    ? problems
    : [report('metadata.name', 'Required value')];

type Document = Pick<FoundResource, 'file' | 'piece' | 'parsed'>;

/** Reads a document with the lines that it has in its file. */
export const readFound = <S extends Shape>(
  document: Document,
  shape: S,
  { publicKeys = PUBLIC_KEYS, most }: Reading = {},
): ConfigDocument<TypeOf<S>> => {
  const count = { values: 0, ...withoutUndefined({ most }) };
  const source = { ...sourceOf(document), publicKeys, count };
  return moveLines(decodeYaml(source, shape), document.piece.line - 1);
};

type Reading = {
  readonly publicKeys?: ReadonlySet<string>;
  /** Values that the document may have; absent: as many as any configuration. */
  readonly most?: number;
};

const sourceOf = ({
  file,
  piece,
  parsed,
}: Document): Pick<TextSource, 'text' | 'parsed' | 'file'> => ({
  text: parsed?.text ?? withoutSeparator(piece),
  file: file.shownAs,
  ...withoutUndefined({ parsed }),
});

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
  const { document, problems } = readResourceMembers(sourceOf(resource), definition);
  const { spec, metadata } = objectOrEmpty(document.value);
  const { labels, annotations } = objectOrEmpty(metadata);
  return {
    resource,
    document: moveLines({ ...document, problems }, resource.piece.line - 1),
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
export function readResourceTexts(resource: FoundResource): ReadonlyMap<string, string> {
  const { data = {}, stringData = {} } = readFound(resource, TEXTS).value;
  const decode = (text: string): string =>
    resource.kind === 'Secret' ? (decodeBase64(text)?.toString('utf8') ?? '') : text;
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
  const { byKind, byName } = groupResources(resources);
  const isNear = (other: FoundResource): boolean =>
    namespace === undefined || other.namespace === undefined || other.namespace === namespace;
  const used = new Set<FoundResource>();
  const use = (found: readonly FoundResource[]): readonly FoundResource[] => {
    for (const each of found) used.add(each);
    return found;
  };
  return {
    find(kind, name) {
      const first = byName.get(`${kind} ${name}`)?.find(isNear);
      return use(first ? [first] : [])[0];
    },
    list: (kind) => use((byKind.get(kind) ?? []).filter(isNear)),
    used,
  };
}

type Groups = Readonly<Record<'byKind' | 'byName', ReadonlyMap<string, readonly FoundResource[]>>>;

/** By the resources of a folder, if they are more than one site has. */
const grouped = new WeakMap<readonly FoundResource[], Groups>();
const MOST_OF_SITE = 100;

function groupResources(resources: readonly FoundResource[]): Groups {
  const groups = grouped.get(resources) ?? {
    byKind: groupBy(resources, ({ kind }) => kind),
    byName: groupBy(resources, ({ kind, name }) => `${kind} ${name}`),
  };
  if (resources.length > MOST_OF_SITE) grouped.set(resources, groups);
  return groups;
}
