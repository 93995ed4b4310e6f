import { Document, Scalar, YAMLMap, YAMLSeq, type Node, type Tags } from 'yaml';
import type { Json } from '../base/text/json.ts';
import { redactAddresses } from '../base/text/redact.ts';
import { toPrintable } from '../base/text/words.ts';
import { joinPath } from '../shape/decode-yaml.ts';
import type { MergedEntry } from '../shape/merge-documents.ts';
import { maskUserInfo } from '../shape/report.ts';
import { FREE, shapeOf, type Shape } from '../shape/shape.ts';
import { APPLIANCE } from './appliance-shape.ts';
import { readMerged, type ConfigInput } from './load.ts';
import { isReference, SECRET_PATHS } from './secrets.ts';

/* Owns the display of a configuration: each value with its source, secrets masked. */

export type ValueSource =
  | {
      readonly kind: 'file' | 'set';
      /** The name of the file, or `--set` with its path. */
      readonly file: string;
      readonly line: number;
      readonly column: number;
    }
  | { readonly kind: 'environment'; readonly variable: string }
  | { readonly kind: 'default' };

/** A value with everything below it. Secrets are masked. */
export type Effective =
  | { readonly kind: 'mapping'; readonly members: readonly (readonly [string, Effective])[] }
  | { readonly kind: 'list'; readonly items: readonly Effective[] }
  | { readonly kind: 'value'; readonly value: Json; readonly source: ValueSource };

/** Values from environment variables, by path; used if no file has a value. */
export type EnvironmentValues = ReadonlyMap<
  string,
  { readonly variable: string; readonly value: Json }
>;

type Place = {
  /** Undefined for an unknown key, which may be a misspelt secret. */
  readonly shape: Shape | undefined;
  readonly byDefault?: (() => unknown) | undefined;
  /** Absent if no input has a value. */
  readonly entry: MergedEntry | undefined;
  readonly path: string;
};

type Circumstances = {
  readonly environment: EnvironmentValues;
  /** Paths whose default does not apply. */
  readonly open: ReadonlySet<string>;
};

/** Every value after the defaults, in the order of the shape; undefined if a file is not YAML. */
export function describeConfig(
  input: ConfigInput,
  environment: EnvironmentValues,
): Effective | undefined {
  const { document, view } = readMerged(input);
  if (document.isBroken) return undefined;
  // A release given by reference or mirror determines the architecture.
  const isGiven = (view.text('ocpRelease.url') ?? view.text('mirrorPath')) !== undefined;
  const open = new Set(isGiven ? ['ocpRelease.cpuArchitecture'] : []);
  return describe({ shape: APPLIANCE, entry: document.root, path: '' }, { environment, open });
}

export function toJson(effective: Effective): Json {
  if (effective.kind === 'value') return effective.value;
  if (effective.kind === 'list') return effective.items.map(toJson);
  return Object.fromEntries(effective.members.map(([name, member]) => [name, toJson(member)]));
}

export function listSources(
  effective: Effective,
  path = '',
): readonly (readonly [path: string, source: ValueSource])[] {
  if (effective.kind === 'value') return [[path, effective.source]];
  return effective.kind === 'list'
    ? effective.items.flatMap((item, index) => listSources(item, `${path}[${index}]`))
    : effective.members.flatMap(([name, member]) => listSources(member, joinPath(path, name)));
}

/** With `hasSources`, each value has its source in a comment. */
export function formatConfig(effective: Effective, hasSources: boolean): string {
  // YAML 1.1 quotes texts that some parsers take for another type, such as "yes".
  const document = new Document(null, { version: '1.1', customTags: EMPTY_TAGS });
  const toNode = (at: Effective): Node => {
    if (at.kind === 'value') {
      const node = isEmpty(at.value) ? new Scalar(at.value) : document.createNode(at.value);
      if (hasSources) node.comment = ` ${formatSource(at.source)}`;
      return node;
    }
    if (at.kind === 'list') {
      const list = new YAMLSeq();
      for (const item of at.items) list.add(toNode(item));
      return list;
    }
    const mapping = new YAMLMap();
    for (const [name, member] of at.members) mapping.set(new Scalar(name), toNode(member));
    return mapping;
  };
  document.contents = toNode(effective);
  document.directives = undefined;
  return document.toString({ lineWidth: 0, flowCollectionPadding: false });
}

function describe(place: Place, given: Circumstances): Effective | undefined {
  const { entry, shape, path } = place;
  const content = entry?.content;
  if (content === undefined) return describeAbsent(place, given);
  if (isHidden(place)) return describeValue(place);
  if (content instanceof Map) return describeMapping(place, content, given);
  if (!Array.isArray(content) || content.length === 0) return describeValue(place);
  const items = content.flatMap((item, index) => {
    const of = shape?.kind === 'list' ? shape.of : FREE;
    const below = { shape: of, entry: item, path: `${path}[${index}]` };
    return describe(below, given) ?? [];
  });
  return { kind: 'list', items };
}

function describeMapping(
  place: Place,
  content: ReadonlyMap<string, MergedEntry>,
  given: Circumstances,
): Effective | undefined {
  const { shape, path } = place;
  const known = shape?.kind === 'record' ? shape.members : undefined;
  const names = new Set([...Object.keys(known ?? {}), ...content.keys()]);
  const members = [...names].flatMap((name) => {
    const member = known?.[name];
    const below = {
      shape: known ? member && shapeOf(member) : FREE,
      byDefault: member?.kind === 'optional' ? member.value : undefined,
      entry: content.get(name),
      path: joinPath(path, name),
    };
    const described = describe(below, given);
    return described === undefined ? [] : [[name, described] as const];
  });
  return members.length === 0 ? describeValue(place) : { kind: 'mapping', members };
}

function describeAbsent(place: Place, given: Circumstances): Effective | undefined {
  const { shape, byDefault, path } = place;
  const variable = given.environment.get(path);
  if (variable !== undefined) {
    const { value } = variable;
    return { kind: 'value', value, source: { kind: 'environment', variable: variable.variable } };
  }
  if (shape?.kind === 'record')
    return describeMapping({ ...place, entry: undefined }, new Map(), given);
  if (byDefault === undefined || given.open.has(path)) return undefined;
  return { kind: 'value', value: byDefault() as Json, source: { kind: 'default' } };
}

const MASK = '[redacted]';

function describeValue(place: Place): Effective | undefined {
  const { entry, path } = place;
  if (entry === undefined) return undefined;
  const { from, content } = entry;
  const { file, line, column } = from.report(path, '');
  const source = { kind: from.path === '' ? 'file' : 'set', file, line, column } as const;
  return { kind: 'value', value: isHidden(place) ? MASK : plain(content), source };
}

function plain(content: MergedEntry['content']): Json {
  if (Array.isArray(content)) return [];
  if (content instanceof Map) return {};
  return typeof content === 'string' ? redactAddresses(maskUserInfo(content)) : (content ?? null);
}

/** True for secrets, regardless of the kind of value; references and public keys are shown. */
function isHidden({ shape, entry, path }: Place): boolean {
  if (shape !== undefined && !SECRET_PATHS.some((secret) => secret === path)) return false;
  const content = entry?.content ?? '';
  if (typeof content !== 'string') return true;
  return (
    content !== '' &&
    !isReference(content) &&
    (path !== 'sshKey' || content.includes('PRIVATE KEY'))
  );
}

const isEmpty = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && Object.keys(value).length === 0;

/** An empty collection as a scalar, so that its comment is on the same line and not below. */
const EMPTY_TAGS: (tags: Tags) => Tags = (tags) => [
  {
    tag: 'tag:sealift,2026:empty',
    default: true,
    identify: isEmpty,
    resolve: (text: string) => text,
    test: /(?!)/,
    stringify: ({ value }) => (Array.isArray(value) ? '[]' : '{}'),
  },
  ...tags,
];

function formatSource(source: ValueSource): string {
  if (source.kind === 'default') return 'default';
  if (source.kind === 'environment') return `environment ${source.variable}`;
  const { file, line, column } = source;
  return source.kind === 'set' ? file : toPrintable(`${file}:${line}:${column}`);
}
