import { parseDigest, type Digest } from '../base/digest.ts';
import { ConfigError } from '../base/errors.ts';

/** An image reference, fully qualified: `registry/repository[:tag][@digest]`. */
export type Reference = {
  /** Host with port, as written: `quay.io`, `localhost:5000`. */
  readonly registry: string;
  readonly repository: string;
  readonly tag?: string;
  readonly digest?: Digest;
};

// distribution-spec 1.1, "Pulling manifests": the two grammars.
const REPOSITORY =
  /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$/;
const TAG = /^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$/;
const HOST = /^(?:[a-zA-Z0-9](?:[a-zA-Z0-9-.]*[a-zA-Z0-9])?|\[[0-9a-fA-F:.]+\])(?::[0-9]{1,5})?$/;

/**
 * Reads a reference. The registry is always required: a short name means different images on
 * different machines. `docker.io/name` gets `library/`.
 *
 * @throws ConfigError `reference.malformed`
 */
export function parseReference(text: string): Reference {
  const [name = '', ...digests] = text.split('@');
  const slash = name.indexOf('/');
  const refuse = (reason: string): never => {
    throw new ConfigError('reference.malformed', `image reference "${text}": ${reason}`);
  };
  if (digests.length > 1) refuse('has more than one digest');
  if (slash < 1) refuse('names no registry');
  const registry = name.slice(0, slash);
  const isHost = /[.:]/.test(registry) || registry === 'localhost';
  if (!isHost || !HOST.test(registry)) refuse(`"${registry}" is no registry host`);
  const rest = name.slice(slash + 1);
  const colon = rest.lastIndexOf(':');
  const tag = colon === -1 ? undefined : rest.slice(colon + 1);
  const path = colon === -1 ? rest : rest.slice(0, colon);
  const repository = registry === 'docker.io' && !path.includes('/') ? `library/${path}` : path;
  if (!REPOSITORY.test(repository)) refuse(`"${repository}" is no repository name`);
  if (tag !== undefined && !TAG.test(tag)) refuse(`"${tag}" is no tag`);
  const digest = digests[0] === undefined ? undefined : parseDigest(digests[0]);
  return { registry, repository, ...(tag !== undefined && { tag }), ...(digest && { digest }) };
}

export function formatReference(reference: Reference): string {
  const tag = reference.tag === undefined ? '' : `:${reference.tag}`;
  const digest = reference.digest === undefined ? '' : `@${reference.digest}`;
  return `${reference.registry}/${reference.repository}${tag}${digest}`;
}
