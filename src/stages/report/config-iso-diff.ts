import { digestOf } from '../../base/digest.ts';
import { IntegrityError } from '../../base/errors.ts';
import { openConfigImage } from '../../media/config-image.ts';
import { readConfiguredCluster } from '../../openshift/agent/cluster.ts';
import { CONFIG_IMAGE_LABEL } from '../../openshift/agent/live-system.ts';
import {
  redactReconfiguration,
  type JsonValue,
  readConfigIso,
  type ConfigIso,
} from '../../sites/config-iso.ts';

/** Reads a configuration ISO or image with its secrets redacted, so that it may be shown. */
export async function showConfigIso(path: string): Promise<ConfigIso> {
  const iso = await readEither(path);
  return { ...iso, manifest: redactManifest(iso) };
}

/** A configuration image has its members as files, and a description of its cluster as manifest. */
async function readEither(path: string): Promise<ConfigIso> {
  const { label, size, archive, problem } = await openConfigImage(path);
  if (label !== CONFIG_IMAGE_LABEL) return readConfigIso(path);
  if (!archive) {
    throw new IntegrityError('config-image.archive', problem?.problem ?? 'there is no archive');
  }
  const entries = [...archive.files].map(([name, data]) => ({
    path: name,
    size: data.length,
    digest: digestOf(data),
  }));
  const manifest = JSON.parse(JSON.stringify(readConfiguredCluster(archive))) as JsonValue;
  return { volumeId: label, size, entries: sortByPath(entries), manifest };
}

const sortByPath = (entries: ConfigIso['entries']): ConfigIso['entries'] =>
  entries.toSorted((a, b) => (a.path < b.path ? -1 : 1));

/** The description of a cluster has no secret. */
const redactManifest = ({ volumeId, manifest }: ConfigIso): JsonValue =>
  volumeId === CONFIG_IMAGE_LABEL ? manifest : redactReconfiguration(manifest);

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
  const [left, right] = [await readEither(a), await readEither(b)];
  const labels = { a: left.volumeId, b: right.volumeId };
  return [
    ...(labels.a === labels.b ? [] : [{ kind: 'volume' as const, path: 'label', ...labels }]),
    ...compare('file', describeFiles(left), describeFiles(right)),
    ...compare('manifest', flatten(left), flatten(right)),
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

function flatten(iso: ConfigIso): Compared {
  const shown = leavesOf(redactManifest(iso));
  const leaves = [...leavesOf(iso.manifest)];
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
