import { type Digest, digestOf } from '../../base/digest.ts';
import { ConfigError } from '../../base/errors.ts';
import { formatCanonicalJson, type Json } from '../../base/text/json.ts';
import type { Places } from '../../iso/index.ts';
import type { SelectedCatalog } from '../../openshift/catalog/selected.ts';
import type { MirrorPlan } from '../../openshift/mirror/plan.ts';
import type { SavedPlan } from './held.ts';
import { type Lock, mismatch, nameField } from './record.ts';

/* Owns how a build is compared with the records that it is held to: the fields of a lock in their order, and a plan. */

function requireSame(field: string, expected: string, found: string): void {
  if (expected !== found) throw mismatch(field, { expected, found });
}

/** Checks members that are known at once, before anything is fetched. */
export function requireMembers(locked: Lock, given: LockMembers): void {
  const held = new Map([['program', locked.program], ...listFields(locked)]);
  for (const [field, found] of Object.entries(given).flatMap(([name, one]) => flatten(one, name))) {
    requireSame(field, held.get(field) ?? 'none', found);
  }
}

/** Members of a lock, as far as a run knows them. */
export type LockMembers = Readonly<Record<string, Json>>;

/** `drawsAgain`: values are drawn that the lock has only the digests of. */
export function requireLocked(held: Lock, found: Lock, drawsAgain: boolean): void {
  const fieldsOf = ({ drawn, ...others }: Lock): ReturnType<typeof listFields> =>
    listFields({ ...others, drawn: drawsAgain ? {} : drawn });
  requireEach(fieldsOf(held), fieldsOf(found));
  // A layout has these places and no other, unless the lock was edited.
  if (!drawsAgain) requireEach(listOffsets(held.places), listOffsets(found.places));
}

type Fields = readonly (readonly [string, string])[];

function requireEach(held: Fields, found: Fields): void {
  const now = new Map(found);
  for (const [field, expected] of held) {
    requireSame(field, expected, now.get(field) ?? 'none');
    now.delete(field);
  }
  for (const [field, value] of now) requireSame(field, 'none', value);
}

const listOffsets = (places: Places | undefined): Fields =>
  places === undefined
    ? []
    : [
        ...Object.entries(places.areas).map(
          ([name, at]) => [`places.areas.${name}`, String(at)] as const,
        ),
        ...places.offsets.map(
          ([digest, at]) => [nameField('places.offsets', digest), String(at)] as const,
        ),
      ];

/** Fields that must fit; earlier fields explain later differences. Tags are checked by the lock itself. */
export function listFields(lock: Lock): Fields {
  const { product, release, path, seed, signatures, base, installer, registryImage } = lock;
  const { catalogs, images, drawn, contents } = lock;
  const fields = {
    product,
    release,
    path,
    seed,
    signatures,
    base,
    installer,
    registryImage,
    catalogs,
    images: Object.fromEntries(images.map((image) => [image, image])),
    drawn,
    contents,
  };
  return Object.entries(fields).flatMap(([name, value]) => flatten(value, name));
}

/** Flattens a value into its texts, each by the name of its place. */
export function flatten(value: Json | undefined, path: string): Fields {
  if (value === undefined) return [];
  if (typeof value === 'string') return [[path, value]];
  const members = Object.entries((value ?? {}) as Readonly<Record<string, Json | undefined>>);
  return members.flatMap(([name, member]) => flatten(member, nameField(path, name)));
}

/** Makes sure that everything that is poured is in the plan. */
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
