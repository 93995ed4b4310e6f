import { digestOf, type Digest } from '../../base/digest.ts';
import { formatCanonicalJson } from '../../base/text/json.ts';
import { redactUrl } from '../../base/text/redact.ts';
import type { UpgradePath } from './upgrade-path.ts';

/**
 * Names, besides tags, that stand for a digest until somebody changes what they stand for. They are noted
 * and asked again in these words:
 *
 * | words                         | digest of                             |
 * | ----------------------------- | ------------------------------------- |
 * | `release 4.21 of stable`      | the payload that the update graph has |
 * | `path from A to B of CHANNEL` | the path, see `digestOfPath`          |
 * | `live ISO of https://...`     | the ISO that the CoreOS stream names  |
 */
export type NotedName =
  | { readonly kind: 'release'; readonly version: string; readonly channel: string }
  | { readonly kind: 'path'; readonly from: string; readonly to: string; readonly channel: string }
  | { readonly kind: 'live-iso' };

export const noteOfRelease = (version: string, channel: string): string =>
  `release ${version} of ${channel}`;

export const noteOfPath = (from: string, to: string, channel: string): string =>
  `path from ${from} to ${to} of ${channel}`;

/** Without the password of the address. */
export const noteOfStream = (url: string): string => `live ISO of ${redactUrl(new URL(url))}`;

export const digestOfPath = (path: UpgradePath): Digest => digestOf(formatCanonicalJson(path));

/** undefined for the reference of an image. */
export function parseNotedName(name: string): NotedName | undefined {
  const [, version, ofRelease] = /^release (\S+) of (\S+)$/.exec(name) ?? [];
  if (version !== undefined && ofRelease !== undefined) {
    return { kind: 'release', version, channel: ofRelease };
  }
  const [, from, to, channel] = /^path from (\S+) to (\S+) of (\S+)$/.exec(name) ?? [];
  if (from !== undefined && to !== undefined && channel !== undefined) {
    return { kind: 'path', from, to, channel };
  }
  return name.startsWith('live ISO of ') ? { kind: 'live-iso' } : undefined;
}
