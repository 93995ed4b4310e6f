import { createHash } from 'node:crypto';
import { formatCanonicalJson, formatReadableJson } from '../../base/text/json.ts';
import { withoutUndefined, isObject } from '../../base/lists.ts';
import type { SiteIdentity } from './site-identity.ts';

/** What of a site its identity depends on: when one of these changes, another identity is used. */
export type StateSite = {
  readonly clusterName: string;
  readonly baseDomain: string;
  /** As given by the user; absent when it was drawn. */
  readonly clusterId?: string;
  readonly infraId?: string;
};

/** One generation of a site's identity, and whose it is. */
export type IdentityState = {
  readonly identity: SiteIdentity;
  readonly site: StateSite;
  /** Id of the rotation that drew it, if one did. */
  readonly rotation?: string;
};

/** Raised when the shape of a state changes: an older one is then unusable. */
const VERSION = 1;

/** The text of a state file. Holds private keys: for files of mode 0600. */
export function formatState({ identity, site, rotation }: IdentityState): string {
  const state = { identity, site, ...withoutUndefined({ rotation }) };
  return formatReadableJson({ version: VERSION, sha256: hashState(state), ...state });
}

/**
 * What a state file holds, or undefined when it is not the whole of what `formatState` wrote: cut
 * short, changed by hand, or of another version.
 */
export function parseState(text: string): IdentityState | undefined {
  const { version, sha256, ...members } = parseObject(text);
  const { identity, site } = members;
  if (version !== VERSION || !isObject(identity) || !isObject(site)) return undefined;
  const state = members as unknown as IdentityState;
  return sha256 === hashState(state) ? state : undefined;
}

/** Whether it was drawn for exactly these names and given ids. */
export const isSameSite = (a: StateSite, b: StateSite): boolean =>
  a.clusterName === b.clusterName &&
  a.baseDomain === b.baseDomain &&
  a.clusterId === b.clusterId &&
  a.infraId === b.infraId;

/** Whether an identity can be used for a site: an id that the site does not give may be any. */
export const fitsSite = ({ identity, site }: IdentityState, wanted: StateSite): boolean =>
  site.clusterName === wanted.clusterName &&
  site.baseDomain === wanted.baseDomain &&
  (wanted.clusterId ?? identity.clusterId) === identity.clusterId &&
  (wanted.infraId ?? identity.infraId) === identity.infraId;

const hashState = (state: IdentityState): string =>
  createHash('sha256').update(formatCanonicalJson(state)).digest('hex');

function parseObject(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : {};
  } catch {
    return {}; // a broken state is an unusable one, which is the answer
  }
}
