import { type Digest, digestOf } from '../../base/digest.ts';
import { isUnreadable } from '../../base/disk/disk-errors.ts';
import { readInputFile } from '../../base/disk/files.ts';
import { ConfigError } from '../../base/errors.ts';
import { formatCanonicalJson } from '../../base/text/json.ts';
import type { SelectedCatalog } from '../../openshift/catalog/selected.ts';
import type { MirrorPlan } from '../../openshift/mirror/plan.ts';
import { requireDecoded, decodeJson } from '../../shape/decode.ts';
import { record, oneOf, optional, TEXT, mapping, DIGEST, type TypeOf } from '../../shape/shape.ts';
import { describeFinding } from '../../shape/words.ts';

/* Owns saved plans: their form, how they are read, and how a build is held to one. */

const KEPT = { others: 'kept' } as const;

const describePlan = (product: string) =>
  record(
    {
      product: oneOf(product),
      release: optional(record({ version: TEXT, reference: TEXT }, KEPT)),
      /** The registry server, by digest. */
      registryImage: optional(TEXT),
      /** Absent on media that do not boot. */
      base: optional(record({ digest: TEXT }, KEPT)),
      tags: mapping(DIGEST),
      /** Digest of every image with its place, every catalog, and the base ISO. */
      contents: TEXT,
    },
    KEPT,
  );

/** The part of a plan, or of a build's report, that another build takes exactly. */
export type SavedPlan = Omit<TypeOf<ReturnType<typeof describePlan>>, 'product'> & {
  /** True if it is from a lock. */
  readonly isLock?: boolean;
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
 * Reads a saved plan.
 * @param path of the output of `sealift plan -o json`, or of the report next to an ISO
 * @throws ConfigError `plan.unreadable`, `plan.too-large`, `plan.malformed`
 */
export function readSavedPlan(path: string, product: string): SavedPlan {
  return requireDecoded(decodeJson(describePlan(product), readPlanText(path)), ([first]) => {
    const message = `"${path}" is not a plan of the product ${product}: ${describeFinding(first)}`;
    const hint =
      'name the file that "sealift plan -o json" was saved to, or the report next to an ISO';
    return new ConfigError('plan.malformed', message, { hint });
  });
}

function readPlanText(path: string): Uint8Array {
  try {
    return readInputFile(path, { domain: 'plan' });
  } catch (cause) {
    if (!isUnreadable(cause)) throw cause;
    throw new ConfigError('plan.unreadable', `plan "${path}" cannot be read`, {
      cause,
      hint: 'name the file that "sealift plan -o json" was saved to',
    });
  }
}

/**
 * Makes sure that everything that is poured is in the plan.
 *
 * @throws ConfigError `plan.differs`
 */
export function requirePlanned(
  { base, contents }: SavedPlan,
  found: { readonly base?: { readonly digest: string }; readonly contents: string },
): void {
  if (contents === found.contents) return;
  if (base?.digest !== found.base?.digest) {
    throw new ConfigError('plan.differs', 'the base ISO is not the planned one', {
      expected: base?.digest ?? 'none',
      found: found.base?.digest ?? 'none',
      hint: 'restore the base ISO, or plan again',
    });
  }
  throw new ConfigError(
    'plan.differs',
    'configuration and options ask for images that differ from the plan',
    {
      expected: contents,
      found: found.contents,
      hint: 'give the configuration and options (such as --from) of the plan, or plan again',
    },
  );
}
