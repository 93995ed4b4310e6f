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
import { listRehearsed, type Rehearsed } from './medium/rehearse-built.ts';
import {
  gap,
  lineOf,
  listRows,
  rowsOf,
  say,
  type Phrase,
  type Report,
  type ReportBlock,
  type ReportRow,
} from './terminal/report.ts';

/* This file owns the lines that the reports and plans of several products share. */

/** Most images named for one reason. */
const MOST_NAMED = 5;

/**
 * Describes which images nodes will pull by the image policies: a summary, then each reason of a refusal, and
 * each policy that was not checked.
 */
export function listImagePolicy({
  policies,
  unchecked,
  isDisabled,
  images,
  refused,
}: ImagePolicyCheck): readonly Phrase[] {
  const names = policies.join(', ');
  return [
    ...(policies.length === 0 ? [] : [judgePolicy(names, { isDisabled, images, refused })]),
    ...listReasons(refused),
    ...unchecked.map(
      (name) => say`${name} was not checked: it does not ask for a signature by a single key`,
    ),
  ];
}

function judgePolicy(
  names: string,
  { isDisabled, images, refused }: Pick<ImagePolicyCheck, 'isDisabled' | 'images' | 'refused'>,
): Phrase {
  if (isDisabled) return say`${names} is disabled on this medium: nodes pull unsigned images`;
  if (images === 0) return say`${names} applies to no image of this medium`;
  if (refused.length === 0) return say`${names} accepts all ${images} images that it applies to`;
  return say`${names}: nodes refuse ${refused.length} of ${images} images at first boot`;
}

/** Describes `etcd, cli and 3 more: it has no signature`. */
function listReasons(refused: ImagePolicyCheck['refused']): readonly Phrase[] {
  return [...groupBy(refused, ({ problem }) => problem)].map(([problem, all]) => {
    const names = [...new Set(all.map(({ name }) => name))];
    return say`${formatNames(names, MOST_NAMED)}: ${problem}`;
  });
}

export const listSignatures = (signatures: readonly DescribedSignature[]): readonly Phrase[] =>
  signatures.map((one) =>
    one.status === 'verified'
      ? say`${one.version} is ${one.identity}, by key ${one.key}`
      : say`${one.version} is unsigned: ${one.problem}`,
  );

function describeMoved({ copiedByServer, ...bytes }: PourReport['bytes']): Phrase {
  const { fetched, copied, reused, written } = bytes;
  const moved = say`${formatSize(fetched)} fetched, ${formatSize(copied)} copied, ${formatSize(reused)} reused`;
  return copiedByServer === undefined
    ? say`${moved}, ${formatSize(written)} written`
    : say`${moved}, ${formatSize(written)} sent, ${formatSize(copiedByServer)} copied by the service`;
}

type Checksum = Pick<PourReport, 'digest' | 'noChecksum'>;

const describeChecksum = ({ digest, noChecksum = 'not known' }: Checksum): ReportRow => [
  'sha256',
  digest === undefined ? say`none: ${noChecksum}` : say`${digest.slice('sha256:'.length)}`,
];

/** Formats the output as a person in the working directory names it. */
export const formatOutput = (output: string, { cwd }: Pick<CliHost, 'cwd'>): string =>
  isHere({ output }) ? formatPath(output, { cwd }) : output;

export const listMade = (
  report: { readonly bytes: PourReport['bytes'] } & Verified & Rehearsed,
): readonly ReportRow[] => [
  ['bytes', describeMoved(report.bytes)],
  ...listVerified(report),
  ...listRehearsed(report),
];

const listVerified = ({ verified }: Verified): readonly ReportRow[] =>
  verified
    ? [
        [
          'verified',
          say`${verified.extents} extents, ${formatSize(verified.bytes)}, ${verified.images} images`,
        ],
      ]
    : [];

export const warnOfTls = (hosts: readonly string[]): readonly Phrase[] =>
  hosts.map(
    (host) =>
      say`TLS of ${host} was not verified, and passwords were sent to it without encryption`,
  );

type Payload = Readonly<Record<'images' | 'blobs' | 'payloadSize' | 'dedupeSaved', number>>;

export const describePayload = (payload: Payload): ReportRow => [
  'payload',
  say`${payload.images} images, ${payload.blobs} blobs, ${formatSize(payload.payloadSize)}; sharing saved ${formatSize(payload.dedupeSaved)}`,
];

/** Files of registries.conf whose mirrors images come from. */
export const listMirrorFiles = (files: readonly string[]): readonly ReportRow[] =>
  rowsOf(
    'mirrors',
    files.map((file) => say`from ${file}`),
  );

export const listWarnings = ({
  warnings,
  unverifiedTls,
}: Readonly<Record<'warnings' | 'unverifiedTls', readonly string[]>>): readonly ReportRow[] => [
  ...rowsOf(
    'warning',
    warnings.map((warning) => say`${warning}`),
  ),
  ...rowsOf('warning', warnOfTls(unverifiedTls)),
];

/** The digest of an artifact in a registry, or the files beside an output in any other place. */
export const listResult = (
  report: DescribedOutput & Checksum & { readonly manifest?: string },
  output: string,
): readonly ReportRow[] =>
  report.manifest === undefined
    ? listBeside(report, output)
    : rowsOf('digest', [say`${report.manifest}`]);

const listBeside = (
  { device, digest }: DescribedOutput & Checksum,
  output: string,
): readonly ReportRow[] =>
  device
    ? [
        ['device', say`${device.serial || ['no serial number']}; every byte was read back from it`],
        ['report', say`${device.report}`],
      ]
    : [
        [
          'report',
          digest === undefined
            ? say`${`${output}.report.json`}`
            : say`${`${output}.report.json`}, ${`${output}.sha256`}`,
        ],
      ];

type MadeReport = Checksum & { readonly isUpToDate: boolean; readonly isoSize: number };

/** The report of a build: its first sentence, the checksum, and the rows of its product. */
export const describeMade = (
  output: string,
  report: MadeReport,
  {
    about,
    rows,
    next,
  }: {
    readonly about: Phrase;
    readonly rows: readonly ReportRow[];
    readonly next: readonly ReportBlock[];
  },
): Report => ({
  title: say`Build of ${output}`,
  body: [
    gap,
    lineOf(
      say`${output} is ${[report.isUpToDate ? 'up to date' : 'complete']}: ${formatSize(report.isoSize)}, ${about}`,
    ),
    gap,
    ...listRows({ indent: 2, width: 10 }, [describeChecksum(report), ...rows]),
    gap,
    ...next,
  ],
});
