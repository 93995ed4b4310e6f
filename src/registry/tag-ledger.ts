import type { Digest } from '../base/digest.ts';
import { ConfigError, RegistryError, SealiftError } from '../base/errors.ts';
import type { RegistryClient } from './client.ts';
import { formatReference, type Reference } from './reference.ts';

/** What tags name: `registry/repository:tag` and a digest. */
export type TagDigests = Readonly<Record<string, Digest>>;

export type TagLedger = {
  /** Asks as the client does, and remembers what each tag named. */
  readonly client: RegistryClient;
  /** What a name that is not a tag was resolved to: a version in an update graph. */
  readonly note: (name: string, digest: Digest) => void;
  /** Sorted by name. */
  readonly list: () => TagDigests;
};

/**
 * Writes down what tags named. With `pinned` they name what they named then, whatever they name now:
 * images are asked for by those digests, and a tag that is not among them is not known.
 */
export function createTagLedger(client: RegistryClient, pinned?: TagDigests): TagLedger {
  const seen = new Map<string, Digest>();
  const note = (name: string, digest: Digest): void => void seen.set(name, digest);
  return {
    note,
    list: () => Object.fromEntries([...seen].sort(([a], [b]) => (a < b ? -1 : 1))),
    client: {
      ...client,
      async fetchManifest(reference, options) {
        if (reference.digest !== undefined) return client.fetchManifest(reference, options);
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
        if (pinned && pinned[name] === undefined) return undefined;
        const found = pinned
          ? await fetchPinned(reference, pinned, async (pin) => {
              const descriptor = await client.resolveTag(pin, options);
              if (descriptor) return descriptor;
              throw gone(name, pin.digest);
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
  pinned: TagDigests,
  fetch: (pin: Reference & { readonly digest: Digest }) => Promise<Found>,
): Promise<Found> {
  const name = formatReference(reference);
  const digest = pinned[name];
  if (digest === undefined) {
    throw new ConfigError('plan.unknown-tag', `the plan does not say what ${name} is`, {
      hint: 'the configuration has changed since: plan again',
    });
  }
  try {
    const { registry, repository } = reference;
    return await fetch({ registry, repository, digest });
  } catch (error) {
    const isGone = error instanceof SealiftError && error.code === 'registry.manifest-unknown';
    throw isGone ? gone(name, digest, error) : error;
  }
}

const gone = (name: string, digest: Digest, cause?: unknown): RegistryError =>
  new RegistryError(
    'plan.gone',
    `${name} was ${digest} when it was planned, and that no longer exists`,
    {
      expected: digest,
      found: 'not found',
      cause,
      hint: 'restore the image in the registry, or plan again',
    },
  );
