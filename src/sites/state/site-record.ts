import { createHash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { formatReadableJson } from '../../base/text/canonical-json.ts';
import { digestFileSync, unlessAbsent } from '../../base/disk/files.ts';
import type { Digest } from '../../base/digest.ts';
import type { SiteInput } from '../site.ts';
import type { SitePlaces } from './site-places.ts';

/** What a configuration ISO is, besides its bytes. */
export type MadeIso = {
  readonly digest: Digest;
  /** Bytes. */
  readonly size: number;
  readonly clusterId: string;
  readonly infraId: string;
  /** Number of the generation of keys that is on it. */
  readonly generation: number;
  /** When every certificate is valid: ISO 8601. */
  readonly validity: { readonly notBefore: string; readonly notAfter: string };
};

/** Raised when the same inputs and the same state give other bytes than before. */
const VERSION = 1;

const VISIBLE = ['iso', 'kubeconfig', 'password'] as const;

/** The state is the generation that was used. */
type Outputs = Readonly<Record<(typeof VISIBLE)[number] | 'state', Digest>>;

type SiteRecord = {
  readonly version: number;
  readonly inputs: Digest;
  readonly outputs: Outputs;
  readonly made: MadeIso;
  /** The rotation that its keys were made in, if any. */
  readonly rotation?: string;
};

/** As it was read: another program may have written it. */
type KeptRecord = Partial<SiteRecord>;

/** What a site is to be made from. */
export type Wanted = { readonly inputs: Digest; readonly rotation?: string };

/**
 * A digest of everything that a site is made from, but for the clock. Files are told apart by their
 * sizes, so that no two sets of files have the same bytes.
 */
export function digestInputs(input: SiteInput): Digest {
  const hash = createHash('sha256');
  for (const { path, bytes } of [...input.files].sort((a, b) => (a.path < b.path ? -1 : 1))) {
    hash.update(`${JSON.stringify(path)} ${bytes.length}\n`).update(bytes);
  }
  return `sha256:${hash.digest('hex')}`;
}

/** What the last run made of the site, of whatever inputs; whether it is still there is not asked. */
export function readRecord({ record: path }: SitePlaces): KeptRecord | undefined {
  const text = unlessAbsent(() => readFileSync(path, 'utf8'));
  const record = text === undefined ? undefined : parseRecord(text);
  return record?.version === VERSION ? record : undefined;
}

/**
 * Whether a record is of these inputs, and of this rotation if there is one, and all that it tells of
 * is still there, byte by byte, with the generation of this number.
 */
export const isUpToDate = (
  record: KeptRecord,
  places: NumberedPlaces,
  { inputs, rotation }: Wanted,
): boolean =>
  record.inputs === inputs &&
  (rotation === undefined || record.rotation === rotation) &&
  record.outputs !== undefined &&
  isThere(places.generation(places.inUse), record.outputs.state) &&
  hasOutputs(places, record.outputs);

type NumberedPlaces = SitePlaces & { readonly inUse: number };

/** Whether the files of a site are there, byte by byte. */
export const hasOutputs = (
  places: SitePlaces,
  wanted: Pick<Outputs, (typeof VISIBLE)[number]>,
): boolean => VISIBLE.every((name) => isThere(places[name], wanted[name]));

/** A pipe of that name is not opened: nobody may ever write to it. */
const isThere = (path: string, wanted: Digest): boolean =>
  unlessAbsent(() => (statSync(path).isFile() ? digestFileSync(path) : undefined)) === wanted;

/** To be written when all else of the site is in its place. */
export const formatRecord = (record: Omit<SiteRecord, 'version'>): string =>
  formatReadableJson({ ...record, version: VERSION });

function parseRecord(text: string): KeptRecord | undefined {
  try {
    const record: unknown = JSON.parse(text);
    return typeof record === 'object' && record !== null ? record : undefined;
  } catch {
    return undefined; // a torn record counts as missing: the site is built again
  }
}
