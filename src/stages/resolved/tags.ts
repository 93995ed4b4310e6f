import { join } from 'node:path';
import { digestOf, hexOf, type Digest } from '../../base/digest.ts';
import { readFileIfPresent, writeFileAtomic } from '../../base/disk/files.ts';
import { ConfigError, RegistryError, SealiftError } from '../../base/errors.ts';
import { formatReadableJson } from '../../base/text/json.ts';
import type { EventListener } from '../../engine/index.ts';
import { formatReference, type Reference, type RegistryClient } from '../../registry/index.ts';
import { decodeJson, ifFaultless } from '../../shape/decode.ts';
import { mapping, record, TEXT } from '../../shape/shape.ts';
import { flatten, listFields } from './compare.ts';
import type { Held } from './held.ts';

/* Owns the digests that tags name: the ledger of a run, and what the run before it noted. */

/** Digests that tags name, by `registry/repository:tag`. */
export type TagDigests = Readonly<Record<string, Digest>>;

type Pinned = {
  readonly tags: TagDigests;
  /** Names the field of a lock that has a digest. Absent: it is a plan. */
  readonly findField?: (digest: Digest) => string | undefined;
};

function pinsOf({ saved, locked }: Held): Pinned | undefined {
  if (!locked) return saved && { tags: saved.tags };
  const findField = (digest: Digest): string | undefined =>
    [...listFields(locked), ...flatten(locked.tags, 'tags')].find(([, value]) =>
      value.endsWith(digest),
    )?.[0];
  return { tags: locked.tags, findField };
}

export type TagLedger = {
  /** Asks registries as the client does, and remembers the digest of each tag. */
  readonly client: RegistryClient;
  /** Records the digest of a name that is not a tag: a version in an update graph. */
  readonly note: (name: string, digest: Digest) => void;
  /** Sorted by name. */
  readonly list: () => TagDigests;
};

/**
 * Creates a ledger of the digests of tags. Tags that are held keep their earlier digests, regardless of their
 * digests now: images are requested by those digests, and a tag that is not among them is unknown.
 */
export function createTagLedger(client: RegistryClient, held: Held = {}): TagLedger {
  const pinned = pinsOf(held);
  const seen = new Map<string, Digest>();
  const note = (name: string, digest: Digest): void => void seen.set(name, digest);
  return {
    note,
    list: () => Object.fromEntries([...seen].sort(([a], [b]) => (a < b ? -1 : 1))),
    client: {
      ...client,
      async fetchManifest(reference, options) {
        if (reference.digest !== undefined) {
          return orGone(client.fetchManifest(reference, options), reference, pinned);
        }
        const name = formatReference(reference);
        const found = pinned
          ? await fetchPinned(reference, pinned, (pin) => client.fetchManifest(pin, options))
          : await client.fetchManifest(reference, options);
        note(name, found.descriptor.digest);
        return found;
      },
      async resolveTag(reference, options) {
        if (reference.digest !== undefined) return client.resolveTag(reference, options);
        const name = formatReference(reference);
        if (pinned && pinned.tags[name] === undefined) return undefined;
        const found = pinned
          ? await fetchPinned(reference, pinned, async (pin) => {
              const descriptor = await client.resolveTag(pin, options);
              if (descriptor) return descriptor;
              throw gone(pin, { name, pinned });
            })
          : await client.resolveTag(reference, options);
        if (found) note(name, found.digest);
        return found;
      },
    },
  };
}

async function fetchPinned<Found>(
  reference: Reference,
  pinned: Pinned,
  fetch: (pin: ByDigest) => Promise<Found>,
): Promise<Found> {
  const name = formatReference(reference);
  const digest = pinned.tags[name];
  if (digest === undefined) throw unknownTag(name, pinned);
  const { registry, repository } = reference;
  const pin = { registry, repository, digest };
  try {
    return await fetch(pin);
  } catch (error) {
    throw isUnknown(error) ? gone(pin, { name, pinned }, error) : error;
  }
}

type ByDigest = Reference & { readonly digest: Digest };

const isUnknown = (error: unknown): boolean =>
  error instanceof SealiftError && error.code === 'registry.manifest-unknown';

function unknownTag(name: string, { findField }: Pinned): ConfigError {
  if (findField) {
    return new ConfigError('lock.mismatch', `tags["${name}"] is not in the lock`, {
      expected: 'none',
      found: name,
      hint: 'run "sealift lock", because the configuration has changed since',
    });
  }
  return new ConfigError('plan.unknown-tag', `the plan has no digest for ${name}`, {
    hint: 'plan again, because the configuration has changed since',
  });
}

/** Names the field of the lock in errors about an image that the lock has by digest. */
async function orGone<Found>(
  found: Promise<Found>,
  { digest, ...reference }: Reference,
  pinned: Pinned | undefined,
): Promise<Found> {
  try {
    return await found;
  } catch (error) {
    if (!pinned?.findField || digest === undefined || !isUnknown(error)) throw error;
    throw gone({ ...reference, digest }, { name: formatReference(reference), pinned }, error);
  }
}

function gone(
  { digest }: ByDigest,
  { name, pinned: { findField } }: { readonly name: string; readonly pinned: Pinned },
  cause?: unknown,
): RegistryError {
  const values = { expected: digest, found: 'not found', cause };
  if (findField) {
    const field = findField(digest) ?? name;
    return new RegistryError('lock.gone', `${field} is ${digest}, which no longer exists`, {
      ...values,
      hint: 'restore the image in the registry, or run "sealift lock"',
    });
  }
  return new RegistryError(
    'plan.gone',
    `${name} was ${digest} when it was planned, and that digest no longer exists`,
    { ...values, hint: 'restore the image in the registry, or plan again' },
  );
}

const NOTED_TAGS = record({ tags: mapping(TEXT) }, { others: 'left-out' });

/**
 * Warns about tags that name another image than when this configuration was last planned or built
 * in this work directory, and stores what they name now. Not for a build of a saved plan, which takes
 * the digests of the plan and asks for no tag.
 */
export async function reportMovedTags(
  tags: TagDigests,
  {
    workDir,
    configuration,
    emit,
  }: {
    readonly workDir: string;
    readonly configuration: string;
    readonly emit: EventListener;
  },
): Promise<void> {
  const name = hexOf(digestOf(configuration)).slice(0, 32);
  const path = join(workDir, 'tags', `${name}.json`);
  const bytes = await readFileIfPresent(path);
  const before = (bytes && ifFaultless(decodeJson(NOTED_TAGS, bytes)))?.tags ?? {};
  for (const [tag, digest] of Object.entries(tags)) {
    const earlier = before[tag];
    if (earlier === undefined || earlier === digest) continue;
    const message = `${tag} has moved since the last plan or build: it was ${earlier} and is ${digest}`;
    emit({ type: 'warning', message });
  }
  await writeFileAtomic(path, formatReadableJson({ configuration, tags }));
}
