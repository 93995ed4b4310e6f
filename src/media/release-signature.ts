import type { Digest } from '../base/digest.ts';
import { IntegrityError } from '../base/errors.ts';
import { parseResolved } from '../ignition/index.ts';
import type { IsoImage } from '../iso/index.ts';
import {
  listSignaturesFor,
  readReleaseKeys,
  type TrustedKeys,
} from '../openshift/release/signature-store.ts';
import { verifyReleaseMessage } from '../openshift/release/signature.ts';
import { readExtraManifests, splitReadable } from './named-images.ts';
import { readBootstrapIgnition } from './open.ts';

/* Owns the check of the signature that a medium carries for the cluster: that of its release. */

/** Conditions for trusting the release of a medium. */
export type ReleaseTrust = {
  /** Path of a file with public keys; default: the keys of Red Hat. */
  readonly keys?: string;
  /** True if a release without a signature is accepted. */
  readonly allowUnsigned: boolean;
};

/**
 * One valid signature among the manifests for the cluster is enough.
 *
 * @returns the fingerprint of the key; undefined for a release without a signature that is accepted
 */
export async function verifyMediumRelease(
  iso: IsoImage,
  release: { readonly digest: Digest; readonly version: string },
  { keys, allowUnsigned }: ReleaseTrust,
): Promise<string | undefined> {
  const messages = await readMessages(iso, release.digest);
  if (messages.length > 0) return verifyAny(messages, release.digest, readReleaseKeys(keys));
  if (allowUnsigned) return undefined;
  throw new IntegrityError(
    'signature.missing',
    `the medium carries no signature of its release ${release.version}`,
    {
      expected: `a signature of ${release.digest}`,
      found: 'no signature',
      hint: 'name a medium of a signed release, or accept this one with --allow-unsigned',
    },
  );
}

async function readMessages(iso: IsoImage, digest: Digest): Promise<readonly Buffer[]> {
  const bootstrap = await readBootstrapIgnition(iso);
  if (bootstrap === undefined) return [];
  const manifests = readExtraManifests(parseResolved(bootstrap, 'bootstrap Ignition config'));
  const documents = manifests.flatMap(splitReadable).map(({ document }) => document);
  return listSignaturesFor(digest, documents);
}

/** The key of the first valid signature; without one, the first is explained. */
function verifyAny(messages: readonly Buffer[], digest: Digest, trusted: TrustedKeys): string {
  let first: unknown;
  for (const message of messages) {
    try {
      return verifyReleaseMessage(message, digest, trusted).key;
    } catch (error) {
      if (!(error instanceof IntegrityError)) throw error;
      first ??= error;
    }
  }
  throw first;
}
