import { ConfigError, UsageError } from '../../base/errors.ts';
import { parseReference, type Reference } from '../../registry/reference.ts';

const SCHEME = 'oci://';

/** @throws UsageError `usage.artifact` */
export function parseArtifactAddress(text: string): Reference {
  if (!text.startsWith(SCHEME)) throw malformed(text, `it does not begin with ${SCHEME}`);
  try {
    return parseReference(text.slice(SCHEME.length));
  } catch (cause) {
    if (cause instanceof ConfigError) throw malformed(text, cause.message);
    throw cause;
  }
}

/** Where to push to has a name that stays: a tag. */
export function parseTaggedAddress(text: string): Reference & { readonly tag: string } {
  const reference = parseArtifactAddress(text);
  const { tag, digest } = reference;
  if (tag !== undefined && digest === undefined) return { ...reference, tag };
  throw malformed(text, 'a push needs a tag, and takes no digest');
}

/** A repository alone: what is in it has digests. */
export function parseRepositoryAddress(text: string): Reference {
  const { tag, digest, ...repository } = parseArtifactAddress(text);
  if (tag === undefined && digest === undefined) return repository;
  throw malformed(text, 'a cache is a repository, without a tag');
}

const malformed = (text: string, reason: string): UsageError =>
  new UsageError('usage.artifact', `"${text}" is not the address of an artifact: ${reason}`, {
    expected: 'oci://REGISTRY/REPOSITORY:TAG',
    found: text,
  });
