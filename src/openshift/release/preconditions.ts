import semver from 'semver';
import { stripBuild } from './version.ts';

/**
 * The reason for which the cluster version operator refuses an update by its versions alone (its
 * `pkg/payload/precondition/clusterversion`, `gianthop.go` and `rollback.go`); undefined if it does not, or
 * if a version cannot be read. Rollback to the release before, within a minor version, is not considered.
 */
export function explainRefused(from: string, to: string): string | undefined {
  const [left, next] = [semver.parse(stripBuild(from)), semver.parse(stripBuild(to))];
  if (!left || !next) return undefined;
  if (next.compare(left) <= 0) return `${to} is not newer than ${from}`;
  if (next.major !== left.major) {
    const isFirst = next.major === 5 && next.minor === 0 && left.major === 4;
    return isFirst ? undefined : `only 5.0 follows another major version, and ${to} does not`;
  }
  return next.minor > left.minor + 1
    ? `${to} is more than one minor version after ${from}`
    : undefined;
}
