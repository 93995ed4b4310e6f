// eslint-disable-next-line no-restricted-imports -- this is where it is parsed
import * as yaml from 'yaml';
import type { CST, Document } from 'yaml';

/*
 * What parses YAML. The library makes an error for each fault of a text, and V8 a stack for each error:
 * half a megabyte of quotes took five seconds. Here no error has a stack.
 *
 * Nor does it take what costs the square of its size. A key that is a collection is written out again with
 * the anchors of all others (8,000 of them took minutes), and the keys of `!!omap` are compared with each
 * other. Neither JSON nor Kubernetes has such keys or such maps.
 *
 * Nor numbers of base 60, which Go's parser leaves out of YAML 1.1: 52:54:00:12:34:56 is an address.
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

/** What it throws does not quote the lines of the text, which may have secrets. */
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

/** The documents of tokens, one of which there is always. `size` is that of their text. */
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
