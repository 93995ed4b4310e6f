import { formatNames } from '../base/errors.ts';
import { groupBy } from '../base/lists.ts';
import { formatSize } from '../base/text/words.ts';
import type { DescribedSignature } from '../openshift/release/release.ts';
import { isHere, type DescribedOutput } from '../outputs/place.ts';
import type { ImagePolicyCheck } from '../stages/2-select/check-image-policy.ts';
import type { PourReport } from '../stages/5-pour/pour.ts';
import type { CliHost } from './host.ts';
import type { Verified } from './medium/verify.ts';
import { formatPath } from './terminal/output.ts';

/* This file owns the lines that the reports and plans of several products share. */

/** Most images named for one reason. */
const MOST_NAMED = 5;

/**
 * Formats which images nodes will pull by the image policies: a summary, then one line for each
 * reason of a refusal, and for each policy that was not checked.
 */
export function formatImagePolicy(
  { policies, unchecked, isDisabled, images, refused }: ImagePolicyCheck,
  label: string,
): readonly string[] {
  const indent = ' '.repeat(label.length);
  const names = policies.join(', ');
  const left = unchecked.map(
    (name) => `${name} was not checked: it does not ask for a signature by a single key`,
  );
  const [first, ...more] = [
    ...(policies.length === 0 ? [] : [summarize(names, { isDisabled, images, refused })]),
    ...formatReasons(refused),
    ...left,
  ];
  return first === undefined ? [] : [`${label}${first}`, ...more.map((line) => `${indent}${line}`)];
}

function summarize(
  names: string,
  { isDisabled, images, refused }: Pick<ImagePolicyCheck, 'isDisabled' | 'images' | 'refused'>,
): string {
  if (isDisabled) return `${names} is disabled on this medium: nodes pull unsigned images`;
  if (images === 0) return `${names} applies to no image of this medium`;
  if (refused.length === 0) return `${names} accepts all ${images} images that it applies to`;
  return `${names}: nodes refuse ${refused.length} of ${images} images at first boot`;
}

/** Formats `etcd, cli and 3 more: it has no signature`. */
function formatReasons(refused: ImagePolicyCheck['refused']): readonly string[] {
  return [...groupBy(refused, ({ problem }) => problem)].map(([problem, all]) => {
    const names = [...new Set(all.map(({ name }) => name))];
    return `${formatNames(names, MOST_NAMED)}: ${problem}`;
  });
}

/** Formats one line for each release: who signed it and as what, or that it is unsigned. */
export const formatSignatures = (
  signatures: readonly DescribedSignature[],
  label: string,
): readonly string[] =>
  signatures.map((one) =>
    one.status === 'verified'
      ? `${label}${one.version} is ${one.identity}, by key ${one.key}`
      : `${label}${one.version} is unsigned: ${one.problem}`,
  );

/** Formats the bytes that were moved for an ISO, and the bytes that already existed. */
export function formatBytes({ copiedByServer, ...bytes }: PourReport['bytes']): string {
  const { fetched, copied, reused, written } = bytes;
  const moved = `${formatSize(fetched)} fetched, ${formatSize(copied)} copied, ${formatSize(reused)} reused`;
  return copiedByServer === undefined
    ? `  bytes     ${moved}, ${formatSize(written)} written`
    : `  bytes     ${moved}, ${formatSize(written)} sent, ${formatSize(copiedByServer)} copied by the service`;
}

type Checksum = Pick<PourReport, 'digest' | 'noChecksum'>;

/** Formats the checksum of the whole ISO, or why it is missing. */
export const formatChecksum = ({ digest, noChecksum = 'not known' }: Checksum): string =>
  `  sha256    ${digest === undefined ? `none: ${noChecksum}` : digest.slice('sha256:'.length)}`;

/** Formats the output as a person in the working directory names it. */
export const formatOutput = (output: string, { cwd }: Pick<CliHost, 'cwd'>): string =>
  isHere({ output }) ? formatPath(output, { cwd }) : output;

/** Formats the findings of `--verify`, if it was given. */
export const formatVerified = ({ verified }: Verified): readonly string[] =>
  verified
    ? [
        `  verified  ${verified.extents} extents, ${formatSize(verified.bytes)}, ${verified.images} images`,
      ]
    : [];

export const warnOfTls = (hosts: readonly string[], label: string): readonly string[] =>
  hosts.map(
    (host) =>
      `${label}TLS of ${host} was not verified, and passwords were sent to it without encryption`,
  );

/** Formats the lines about the files that describe the ISO. */
export const formatFiles = (
  { device, digest }: DescribedOutput & Checksum,
  output: string,
): readonly string[] =>
  device
    ? [
        `  device    ${device.serial || 'no serial number'}; every byte was read back from it`,
        `  report    ${device.report}`,
      ]
    : [`  report    ${output}.report.json${digest === undefined ? '' : `, ${output}.sha256`}`];
