import { ConfigError } from '../../base/errors.ts';
import { formatSize } from '../../base/text/quantities.ts';
import type { MirrorPlan } from './mirror-plan.ts';
import { findOmissions, type Omission } from './plan-costs.ts';

/**
 * Fails as soon as the images alone are too large, before the base ISO or a layer is fetched.
 *
 * @throws ConfigError `iso.over-max-size`
 */
export function checkPayloadSize(plan: MirrorPlan, maxSize: number | undefined): void {
  checkMaxSize(plan.blobSize + plan.manifestSize, maxSize, plan);
}

/**
 * @param isoSize bytes of the ISO, or of what is known of it so far
 * @throws ConfigError `iso.over-max-size`, with what could be left out
 */
export function checkMaxSize(isoSize: number, maxSize: number | undefined, plan: MirrorPlan): void {
  if (maxSize === undefined || isoSize <= maxSize) return;
  const omissions = findOmissions(plan, isoSize - maxSize);
  throw new ConfigError(
    'iso.over-max-size',
    `the ISO would have ${formatSize(isoSize)}, more than build.maxSize of ${formatSize(maxSize)}`,
    {
      expected: `at most ${maxSize}`,
      found: String(isoSize),
      hint:
        omissions.length === 0
          ? 'raise build.maxSize: all operators and additional images together save too little'
          : `leave out ${omissions.map(formatOmission).join(', or ')}, or raise build.maxSize`,
    },
  );
}

const formatOmission = ({ parts, size }: Omission): string =>
  `${parts.join(' and ')} (${formatSize(size)})`;
