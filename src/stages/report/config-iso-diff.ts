import {
  redactReconfiguration,
  type JsonValue,
  readConfigIso,
  type ConfigIso,
} from '../../sites/config-iso.ts';

/** Reads a configuration ISO with its secrets redacted, so that it may be shown. */
export async function showConfigIso(path: string): Promise<ConfigIso> {
  const iso = await readConfigIso(path);
  return { ...iso, manifest: redactReconfiguration(iso.manifest) };
}

/** A difference between two configuration ISOs; secrets are masked. */
export type ConfigIsoDifference = {
  /** `file` paths are paths on the ISO, `manifest` paths join keys with dots. */
  readonly kind: 'volume' | 'file' | 'manifest';
  readonly path: string;
  /** Undefined if it does not exist there. */
  readonly a: string | undefined;
  readonly b: string | undefined;
};

/** Finds the differences between two configuration ISOs, the manifest member by member. */
export async function diffConfigIsos(a: string, b: string): Promise<ConfigIsoDifference[]> {
  const [left, right] = [await readConfigIso(a), await readConfigIso(b)];
  const labels = { a: left.volumeId, b: right.volumeId };
  return [
    ...(labels.a === labels.b ? [] : [{ kind: 'volume' as const, path: 'label', ...labels }]),
    ...compare('file', describeFiles(left), describeFiles(right)),
    ...compare('manifest', flatten(left.manifest), flatten(right.manifest)),
  ];
}

/** Values that are compared, and the part of them that is shown. */
type Compared = ReadonlyMap<string, { readonly value: string; readonly shown: string }>;

/** Describes the files, except the manifest, which is compared member by member. */
const describeFiles = ({ entries }: ConfigIso): Compared =>
  new Map(
    entries.map(({ path, digest, size }) => {
      const shown = digest === undefined ? 'directory' : `${size} bytes, ${digest}`;
      const value = path.endsWith('/manifest.json') ? 'manifest' : shown;
      return [path, { value, shown }];
    }),
  );

function flatten(manifest: JsonValue): Compared {
  const shown = leavesOf(redactReconfiguration(manifest));
  const leaves = [...leavesOf(manifest)];
  return new Map(leaves.map(([path, value]) => [path, { value, shown: shown.get(path) ?? '' }]));
}

function leavesOf(value: JsonValue, path = ''): Map<string, string> {
  if (typeof value !== 'object' || value === null) return new Map([[path, String(value)]]);
  const members = Object.entries(value as Readonly<Record<string, JsonValue>>);
  if (members.length === 0) return new Map([[path, Array.isArray(value) ? '[]' : '{}']]);
  return new Map(
    members.flatMap(([key, member]) => [...leavesOf(member, path === '' ? key : `${path}.${key}`)]),
  );
}

function compare(
  kind: ConfigIsoDifference['kind'],
  left: Compared,
  right: Compared,
): ConfigIsoDifference[] {
  const paths = [...new Set([...left.keys(), ...right.keys()])].sort();
  return paths
    .filter((path) => left.get(path)?.value !== right.get(path)?.value)
    .map((path) => ({ kind, path, a: left.get(path)?.shown, b: right.get(path)?.shown }));
}
