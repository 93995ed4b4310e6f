import fc from 'fast-check';

type Path = readonly (string | number)[];

const listPaths = (value: unknown, path: Path = []): readonly Path[] => [
  path,
  ...(typeof value === 'object' && value !== null
    ? Object.entries(value).flatMap(([key, below]) =>
        listPaths(below, [...path, Array.isArray(value) ? Number(key) : key]),
      )
    : []),
];

function put(value: unknown, [key, ...rest]: Path, change: unknown): unknown {
  if (key === undefined) return change;
  if (Array.isArray(value)) {
    return value.map((item, at) => (at === key ? put(item, rest, change) : (item as unknown)));
  }
  const object = value as Readonly<Record<string, unknown>>;
  return { ...object, [key]: put(object[key], rest, change) };
}

const word = fc.constantFrom(
  ...['', ' ', '0', '-1', '1', 'yes', '~', '<<', '=', 'v1', 'eth0', '192.0.2.9', '192.0.2.0/24'],
  ...['::', 'fe80::1', 'fd02::/112', '0.0.0.0/0', 'http://', 'http://[::1]:1', '*', 'a,b', '{}'],
  ...['{"auths":1}', '{"auths":{"":null}}', 'None', 'none', 'master', 'absent', 'toString'],
);

const anything = fc.oneof(
  word,
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom<unknown>(null, {}, [], [null], { '': null }, 1e308, -0, 0.5, 2 ** 53, -(2 ** 31)),
  fc.dictionary(fc.constantFrom('name', 'ip', '__proto__', 'enabled', 'config', ''), word),
);

/** A good document with any value at any of its keys, or at a key that it did not have. */
export const putAnything = (good: unknown): fc.Arbitrary<unknown> =>
  fc
    .tuple(fc.constantFrom(...listPaths(good)), fc.option(fc.string(), { freq: 10 }), anything)
    .map(([path, more, value]) => {
      const isMapping = ![...path.slice(-1)].some((key) => typeof key === 'number');
      return put(good, more === null || !isMapping ? path : [...path.slice(0, -1), more], value);
    });
