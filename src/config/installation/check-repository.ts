import { isIP } from 'node:net';

const NAME = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*$/;
const DOMAIN =
  /^(?:(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])(?:\.(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9]))*|\[[0-9a-fA-F:]+\])(?::\d+)?$/;
const TAG = /^\w[\w.-]{0,127}$/;
const DIGEST = /^[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}$/;

/** RFC 1123 2.1 in the form of Kubernetes: labels of lower-case letters, digits and hyphens. */
export const isDomain = (text: string): boolean =>
  text.length <= 253 &&
  text.split('.').every((label) => /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/.test(label));

/**
 * What is wrong with the name of a repository of images: `registry/path` without tag and digest, or a
 * registry alone.
 */
export function checkRepository(text: string): string | undefined {
  const named = parseNamed(text);
  if (typeof named === 'string') return `failed to parse: ${named}`;
  if (named.canonical) {
    return named.isNameOnly ? undefined : 'must be repository--not reference';
  }
  const host = text.replace(/^\[(.*)\](?::\d+)?$|:[^:/]*$/, '$1');
  if (isIP(host) !== 0 || isIP(text) !== 0 || isDomain(host)) return undefined;
  return `the repository provided is invalid: ${JSON.stringify(host)} is neither an IP address nor a domain name`;
}

type Named = { readonly canonical: boolean; readonly isNameOnly: boolean };

/** The normal form of distribution's references; a text says why there is none. */
function parseNamed(text: string): Named | string {
  if (/^[a-f0-9]{64}$/.test(text)) {
    return `invalid repository name (${text}), cannot specify 64-byte hexadecimal strings`;
  }
  const { domain, remainder, canonical } = splitDomain(text);
  const [path = '', tag, digest] = splitRemainder(remainder);
  const repository = remainder.split(':')[0] ?? '';
  if (repository.toLowerCase() !== repository) {
    return 'invalid reference format: repository name must be lowercase';
  }
  const isSound =
    DOMAIN.test(domain) &&
    path.split('/').every((part) => NAME.test(part)) &&
    (tag === undefined || TAG.test(tag)) &&
    (digest === undefined || DIGEST.test(digest));
  if (!isSound) return 'invalid reference format';
  if (path.length > 255) return 'repository name must not be more than 255 characters';
  return { canonical, isNameOnly: tag === undefined && digest === undefined };
}

/** What has no registry in front belongs to Docker Hub, and its own names to its `library`. */
function splitDomain(text: string): {
  readonly domain: string;
  readonly remainder: string;
  readonly canonical: boolean;
} {
  const slash = text.indexOf('/');
  const first = text.slice(0, Math.max(slash, 0));
  const isDomainLike = /[.:]/.test(first) || first === 'localhost' || first.toLowerCase() !== first;
  if (slash < 0 || !isDomainLike) {
    return { domain: 'docker.io', remainder: text, canonical: false };
  }
  const remainder = text.slice(slash + 1);
  const isShort = first === 'docker.io' && !remainder.includes('/');
  return { domain: first, remainder, canonical: first !== 'index.docker.io' && !isShort };
}

function splitRemainder(text: string): readonly (string | undefined)[] {
  const at = text.indexOf('@');
  const name = at < 0 ? text : text.slice(0, at);
  const colon = name.indexOf(':');
  const path = colon < 0 ? name : name.slice(0, colon);
  return [
    path,
    colon < 0 ? undefined : name.slice(colon + 1),
    at < 0 ? undefined : text.slice(at + 1),
  ];
}
