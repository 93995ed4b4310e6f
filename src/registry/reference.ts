import { explainDigest, isDigest, type Digest } from '../base/digest.ts';
import { ConfigError } from '../base/errors.ts';
import { withoutUndefined } from '../base/lists.ts';
import { maskLogin } from '../base/text/redact.ts';

/** An image reference, fully qualified: `registry/repository[:tag][@digest]`. */
export type Reference = {
  /** Host with port, as written: `quay.io`, `localhost:5000`. */
  readonly registry: string;
  readonly repository: string;
  readonly tag?: string;
  readonly digest?: Digest;
};

/**
 * Reads a reference. The registry is always required: a short name means different images on
 * different machines. `docker.io/name` gets `library/`.
 *
 * @throws ConfigError `reference.malformed`
 */
export function parseReference(text: string): Reference {
  const reason = explainReference(text);
  if (reason !== undefined) {
    throw new ConfigError('reference.malformed', `image reference "${maskLogin(text)}": ${reason}`);
  }
  const { registry, repository, tag, digest } = split(text);
  return {
    registry,
    repository,
    ...withoutUndefined({ tag }),
    ...(digest !== undefined && isDigest(digest) && { digest }),
  };
}

const HAS_LOGIN =
  'has a user and a password before "@", which belong into an auth file: use podman login';

export function formatReference(reference: Reference): string {
  const tag = reference.tag === undefined ? '' : `:${reference.tag}`;
  const digest = reference.digest === undefined ? '' : `@${reference.digest}`;
  return `${reference.registry}/${reference.repository}${tag}${digest}`;
}

// distribution-spec 1.1, "Pulling manifests": the grammars of <name> and of a tag.
export const REPOSITORY =
  /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$/u;
export const IMAGE_TAG = /^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$/u;

/** No file system or client accepts a longer name; it also bounds the time that the grammar takes. */
const MAX_REPOSITORY_SIZE = 255;

export const isRepository = (text: string): boolean =>
  text.length <= MAX_REPOSITORY_SIZE && REPOSITORY.test(text);

export const isTag = (text: string): boolean => IMAGE_TAG.test(text);

export function checkRepository(text: string): void {
  if (!isRepository(text)) throw malformed(text, 'repository name');
}

export function checkTag(text: string): void {
  if (!isTag(text)) throw malformed(text, 'tag');
}

const malformed = (text: string, what: string): ConfigError =>
  new ConfigError('reference.malformed', `"${text}" is not a valid ${what}`);

/** Cuts at the separators without checking the parts; a second digest makes the first malformed. */
function split(text: string) {
  const at = text.indexOf('@');
  const name = at === -1 ? text : text.slice(0, at);
  const slash = name.indexOf('/');
  const registry = name.slice(0, Math.max(0, slash));
  const rest = name.slice(slash + 1);
  const colon = rest.lastIndexOf(':');
  const path = colon === -1 ? rest : rest.slice(0, colon);
  return {
    registry,
    repository: registry === 'docker.io' && !path.includes('/') ? `library/${path}` : path,
    tag: colon === -1 ? undefined : rest.slice(colon + 1),
    digest: at === -1 ? undefined : text.slice(at + 1),
  };
}

/** `domain` of the reference grammar of github.com/distribution/reference. */
const HOST =
  /^(?:[a-zA-Z0-9]+(?:-+[a-zA-Z0-9]+)*(?:\.[a-zA-Z0-9]+(?:-+[a-zA-Z0-9]+)*)*|\[[0-9a-fA-F:.]+\])(?::([0-9]+))?$/;

const HIGHEST_PORT = 65_535;

/** True for the host of a registry, with its port or without. */
export function isRegistryHost(text: string): boolean {
  const [host, port = '1'] = text.length <= MAX_REPOSITORY_SIZE ? (HOST.exec(text) ?? []) : [];
  return host !== undefined && Number(port) >= 1 && Number(port) <= HIGHEST_PORT;
}

/** The reason why a text is not a reference, as a sentence without its subject. */
export const explainReference = (text: string): string | undefined =>
  maskLogin(text) === text ? whyMalformed(split(text)) : HAS_LOGIN;

export const readReference = (text: string): Reference | undefined =>
  explainReference(text) === undefined ? parseReference(text) : undefined;

type RegistryForm = {
  /** True if a tag or a digest may follow the repository. */
  readonly mayHaveTag?: boolean;
};

/**
 * The reason why a text is not the name of a registry, `HOST[:PORT]`, or of repositories on it,
 * `HOST[:PORT]/PATH`, as a sentence without its subject.
 */
export function explainRegistryName(
  text: string,
  { mayHaveTag = false }: RegistryForm = {},
): string | undefined {
  if (maskLogin(text) !== text) return HAS_LOGIN;
  if (text.includes('://')) return 'must have no scheme';
  if (!text.includes('/')) return isRegistryHost(text) ? undefined : explainHost(text);
  const { registry, repository, tag, digest } = split(text);
  const isTagged = tag !== undefined || digest !== undefined;
  if (isTagged && !mayHaveTag) return 'must have no tag and no digest';
  return whyMalformed({ registry, repository, tag, digest });
}

const explainHost = (text: string): string => `"${text}" is not a valid registry host`;

type Parts = ReturnType<typeof split>;

function whyMalformed({ registry, repository, tag, digest }: Parts): string | undefined {
  // A first part without dot and port is a name on some default registry.
  const isHost = /[.:]/.test(registry) || registry === 'localhost';
  if (!isHost) return `names no registry: write it in full, as in registry.example.com/team/app`;
  if (!isRegistryHost(registry)) return explainHost(registry);
  if (!isRepository(repository)) return `"${repository}" is not a valid repository name`;
  if (tag !== undefined && !isTag(tag)) return `"${tag}" is not a valid tag`;
  const why = digest === undefined ? undefined : explainDigest(digest);
  return why === undefined ? undefined : `"${digest}" ${why}`;
}
