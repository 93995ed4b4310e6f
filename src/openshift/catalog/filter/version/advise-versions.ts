import { withoutUndefined } from '../../../../base/members.ts';
import type { CatalogBundle } from '../../catalog.ts';
import type { VersionBounds } from '../../selection.ts';
import { type BundleVersion, compareVersions, parseBundleVersion } from './bundle-version.ts';
import { completeVersion, parseConstraint } from './version-constraint.ts';
import { formatRange } from '../selection-bounds.ts';

type Known = { readonly text: string; readonly version: BundleVersion };

/** Versions that are named on either side of what was asked for. */
const NAMED = 2;

/**
 * What to write instead of bounds that no version is in: the nearest versions that exist, and the bound
 * that accepts pre-releases where that is all it takes. Undefined when there are no versions.
 */
export function adviseVersions(
  bounds: VersionBounds,
  bundles: readonly Pick<CatalogBundle, 'version'>[],
): string | undefined {
  const known = listKnown(bundles);
  const wanted = parseBundleVersion(
    completeVersion(bounds.minVersion ?? bounds.maxVersion ?? '') ?? '',
  );
  if (wanted === undefined || known.length === 0) return undefined;
  const above = known.findIndex(({ version }) => compareVersions(version, wanted) >= 0);
  const at = above === -1 ? known.length : above;
  const nearest = known.slice(Math.max(0, at - NAMED), at + NAMED).map(({ text }) => text);
  const advice = `the nearest versions are ${nearest.join(', ')}`;
  const wider = acceptPrereleases(bounds);
  const isEnough = known.some(({ text }) => parseConstraint(wider.range).accepts(text));
  return isEnough ? `write ${wider.text} to accept pre-releases; ${advice}` : advice;
}

function listKnown(bundles: readonly Pick<CatalogBundle, 'version'>[]): readonly Known[] {
  return [...new Set(bundles.map(({ version }) => version ?? ''))]
    .flatMap((text) => {
      const version = parseBundleVersion(text);
      return version === undefined ? [] : [{ text, version }];
    })
    .sort((a, b) => compareVersions(a.version, b.version));
}

/** `-0` is the lowest pre-release, and a bound with one accepts all (Masterminds/semver). */
function acceptPrereleases({ minVersion, maxVersion }: VersionBounds): {
  readonly range: string;
  readonly text: string;
} {
  const lowest = completeVersion(minVersion ?? '0.0.0') ?? '0.0.0';
  const [, release = ''] = /^([0-9.]+)/.exec(lowest) ?? [];
  const wider = { minVersion: `${release}-0`, ...withoutUndefined({ maxVersion }) };
  const end =
    minVersion === maxVersion && maxVersion !== undefined ? `, maxVersion: ${maxVersion}` : '';
  return { range: formatRange(wider) ?? '', text: `minVersion: ${wider.minVersion}${end}` };
}
