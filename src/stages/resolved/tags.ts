import type { Digest } from '../../base/digest.ts';
import { ConfigError, RegistryError, SealiftError } from '../../base/errors.ts';
import { formatReference, type Reference, type RegistryClient } from '../../registry/index.ts';

/* The ledger of the digests that tags named in a run. */

/** Digests that tags name, by `registry/repository:tag`. */
export type TagDigests = Readonly<Record<string, Digest>>;

/** Names and digests that an earlier run recorded. */
export type Pinned = {
  readonly tags: TagDigests;
  /** Names the field of a lock that has a digest. Absent: it is a plan. */
  readonly findField?: (digest: Digest) => string | undefined;
};

export type TagLedger = {
  /** Asks registries as the client does, and remembers the digest of each tag. */
  readonly client: RegistryClient;
  /** Records the digest of a name that is not a tag: a version in an update graph. */
  readonly note: (name: string, digest: Digest) => void;
  /** Sorted by name. */
  readonly list: () => TagDigests;
};

/**
 * Creates a ledger of the digests of tags. With `pinned`, tags keep their earlier digests,
 * regardless of their digests now: images are requested by those digests, and a tag that is not
 * among them is unknown.
 */
export function createTagLedger(client: RegistryClient, pinned?: Pinned): TagLedger {
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
