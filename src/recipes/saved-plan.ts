import { digestOf, isDigest, type Digest } from '../base/digest.ts';
import { formatCanonicalJson } from '../base/text/json.ts';
import { isUnreadable } from '../base/disk/disk-errors.ts';
import { ConfigError } from '../base/errors.ts';
import { readInputFile } from '../base/disk/files.ts';
import type { SelectedCatalog } from '../openshift/catalog/selected.ts';
import type { MirrorPlan } from '../openshift/mirror/plan.ts';
import type { TagDigests } from '../registry/tag-ledger.ts';

/** What a plan, or the report of a build, says for another build to take exactly. */
export type SavedPlan = {
  readonly release?: { readonly version: string; readonly reference: string };
  /** The registry server, by digest. */
  readonly registryImage?: string;
  /** Absent on media that do not boot. */
  readonly base?: { readonly digest: string };
  readonly tags: TagDigests;
  /** Whether it stands in a lock. */
  readonly isLock?: boolean;
  /** Of every image with its place, every catalog, and the base ISO. */
  readonly contents: string;
};

/** A digest of all that is carried, by digest. */
export const digestContents = (carried: {
  readonly plan: MirrorPlan;
  readonly catalogs: readonly SelectedCatalog[];
  readonly base?: { readonly digest: Digest };
}): Digest => {
  const { images, registryImage } = carried.plan;
  const all = registryImage ? [...images, registryImage] : images;
  return digestOf(
    formatCanonicalJson({
      ...(carried.base && { base: carried.base.digest }),
      images: all.map(({ source, destination, manifests }) => ({ source, destination, manifests })),
      catalogs: carried.catalogs.map(({ name, digest, bundles }) => ({ name, digest, bundles })),
    }),
  );
};

/**
 * @param path of what `sealift plan -o json` printed, or of the report beside an ISO
 * @throws ConfigError `plan.unreadable`, `plan.too-large`, `plan.malformed`
 */
export function readSavedPlan(path: string, product: string): SavedPlan {
  const value = parse(readPlanText(path));
  if (isSavedPlan(value) && value.product === product) return value;
  throw new ConfigError('plan.malformed', `"${path}" is not a plan of the product ${product}`, {
    expected: `JSON with product "${product}", tags and contents`,
    found: describe(value),
    hint: 'name the file that "sealift plan -o json" was saved to, or the report beside an ISO',
  });
}

function readPlanText(path: string): string {
  try {
    return readInputFile(path, { domain: 'plan' }).toString('utf8');
  } catch (cause) {
    if (!isUnreadable(cause)) throw cause;
    throw new ConfigError('plan.unreadable', `plan "${path}" cannot be read`, {
      cause,
      hint: 'name the file that "sealift plan -o json" was saved to',
    });
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isSavedPlan(value: unknown): value is SavedPlan & { readonly product: string } {
  if (typeof value !== 'object' || value === null) return false;
  const { product, tags, contents, base } = value as Partial<Record<string, unknown>>;
  if (typeof product !== 'string' || typeof contents !== 'string') return false;
  if (base !== undefined && !isObject(base, 'digest')) return false;
  return (
    isObject(tags) && Object.values(tags).every((tag) => typeof tag === 'string' && isDigest(tag))
  );
}

const isObject = (value: unknown, ...keys: readonly string[]): value is object =>
  typeof value === 'object' && value !== null && keys.every((key) => key in value);

function describe(value: unknown): string {
  if (typeof value !== 'object' || value === null) return 'no JSON object';
  const { product } = value as { readonly product?: unknown };
  return typeof product === 'string' ? `a ${product}` : 'another document';
}

/**
 * Nothing is poured that the plan did not say.
 *
 * @throws ConfigError `plan.differs`
 */
export function requirePlanned(
  { base, contents }: SavedPlan,
  found: { readonly base?: { readonly digest: string }; readonly contents: string },
): void {
  if (contents === found.contents) return;
  if (base?.digest !== found.base?.digest) {
    throw new ConfigError('plan.differs', 'the base ISO is another than the one that was planned', {
      expected: base?.digest ?? 'none',
      found: found.base?.digest ?? 'none',
      hint: 'restore the base ISO, or plan again',
    });
  }
  throw new ConfigError(
    'plan.differs',
    'configuration and options ask for other images than were planned',
    {
      expected: contents,
      found: found.contents,
      hint: 'give the configuration and options (such as --from) as they were planned, or plan again',
    },
  );
}
