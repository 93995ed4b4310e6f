import { formatSize } from '../../base/text/words.ts';
import {
  type DeltaDescription,
  type DeltaEnd,
  formatDeltaName,
  formatEnd,
} from '../../media/delta/describe.ts';
import type { DiskInspection } from '../../media/inspect-disk.ts';
import type { Inspection } from '../../media/inspect.ts';
import { type Phrase, type ReportRow, say, rowsOf } from '../terminal/report.ts';
import { listHeldImage } from './held-image-rows.ts';

/* The rows that `inspect` prints. */

export const describeDeltaFile = (delta: DeltaDescription): readonly ReportRow[] =>
  delta.kind === 'delta'
    ? [
        ['kind', say`delta, ${formatSize(delta.size)}`],
        ['from', say`${formatEnd(delta.from)}`],
        ...listEndDigest(delta.from),
        ['to', say`${formatEnd(delta.to)}, ${formatSize(delta.to.size)}`],
        ...listEndDigest(delta.to),
        ['patches', say`${delta.patches}`],
      ]
    : [['kind', say`${formatDeltaName(delta)}, ${formatSize(delta.size)}`]];

/** The digest of an ISO whose name is known; it is printed instead of the name otherwise. */
const listEndDigest = ({ product, digest }: DeltaEnd): readonly ReportRow[] =>
  product === undefined ? [] : [['  index', say`${digest}`]];

export const listDisk = ({
  size,
  partitions,
  recovery,
  data,
}: DiskInspection): readonly ReportRow[] => [
  ['kind', say`disk image, ${formatSize(size)}`],
  ...partitions.map(({ name, size, offset }): ReportRow => [
    'partition',
    say`${name}: ${formatSize(size)} from byte ${offset}`,
  ]),
  ['agentboot', []],
  ...listInspected(recovery),
  ['agentdata', []],
  ...listInspected(data),
];

export function listInspected(inspection: Inspection): readonly ReportRow[] {
  const { volume, extensions, size } = inspection;
  const names = [extensions.rockRidge && 'Rock Ridge', extensions.joliet && 'Joliet'];
  return [
    ['volume', say`${volume.id}, ${formatSize(volume.size)} of ${formatSize(size)}`],
    ['extensions', [names.filter(Boolean).join(', ') || 'none']],
    ...inspection.bootEntries.map(({ platform, loadSectors, offset }): ReportRow => [
      'boot',
      say`${platform}: ${loadSectors} sectors from byte ${offset}`,
    ]),
    ...inspection.partitions.map(({ table, type, size, offset }): ReportRow => [
      'partition',
      say`${table} ${type}: ${formatSize(size)} from byte ${offset}`,
    ]),
    ...listDamage('partitions', inspection.partitionsProblem),
    ...listCoreos(inspection),
    ...listMedium(inspection),
  ];
}

const listDamage = (what: string, problem: string | undefined): readonly ReportRow[] =>
  problem === undefined ? [] : [[what, say`damaged: ${problem}`]];

function listCoreos({ coreos, notCoreos }: Inspection): readonly ReportRow[] {
  if (!coreos) return [['coreos', say`not a CoreOS live ISO: ${notCoreos ?? 'no sign of one'}`]];
  const { embedArea, bootstrapProblem } = coreos;
  const bootstrap = coreos.bootstrapIgnition ? 'a config in a separate initrd' : 'none';
  return [
    [
      'embed area',
      say`${formatSize(embedArea.used)} of ${formatSize(embedArea.size)} used in ${embedArea.file}${[embedArea.grown ? ', grown' : '']}: ${describeEmbedded(coreos)}`,
    ],
    ...rowsOf('bootstrap', bootstrapProblem === undefined ? [[bootstrap]] : []),
    ...listDamage('bootstrap', bootstrapProblem),
    ...rowsOf('OS stream', coreos.osStream === undefined ? [] : [say`${coreos.osStream}`]),
    ['kernel args', say`${coreos.kargs}`],
    ...rowsOf(
      '  default',
      coreos.kargs === coreos.defaultKargs ? [] : [say`${coreos.defaultKargs}`],
    ),
  ];
}

function describeEmbedded({ embedArea, ignition }: NonNullable<Inspection['coreos']>): string {
  if (embedArea.problem !== undefined) return `damaged: ${embedArea.problem}`;
  return ignition ? 'a config is embedded' : 'no config is embedded';
}

function listMedium(inspection: Inspection): readonly ReportRow[] {
  const { media, mediaProblem, proof, product } = inspection;
  if (media) return listIndexed(media, inspection);
  if (mediaProblem !== undefined) return listDamage('index', mediaProblem);
  const maker: readonly ReportRow[] = proof
    ? [
        ['made by', say`sealift ${proof.program}: ${product}`],
        ['of', say`${proof.of}`],
        ['proof', say`${proof.digest}`],
      ]
    : [['made by', [`not sealift${DESCRIBED[product] ?? ''}`]]];
  return [...maker, ...listAreas(inspection)];
}

const DESCRIBED: Readonly<Record<string, string>> = {
  'coreos-live': ': a live ISO of CoreOS',
  'minimal-iso': ': a minimal live ISO of CoreOS, which fetches its root file system',
};

function listIndexed(
  media: NonNullable<Inspection['media']>,
  about: Inspection,
): readonly ReportRow[] {
  const { release, sizes, program } = media;
  return [
    ['made by', say`sealift${program === undefined ? [] : say` ${program}`}: ${media.product}`],
    ['release', say`${release.version} ${release.architecture}`],
    ['', say`${release.reference}`],
    ...rowsOf(
      'signature',
      (media.unsigned ?? []).map((version) => say`${version} is unsigned`),
    ),
    ...rowsOf(
      'images',
      Object.entries(media.images).map(
        ([set, count]) => say`${set}: ${count}, ${formatSize(sizes[set] ?? 0)}`,
      ),
    ),
    ...rowsOf(
      'operator',
      (media.catalogs ?? []).flatMap(({ packages }) => packages.map(describeOperator)),
    ),
    ['payload', say`${formatSize(media.payloadSize)}, shared blobs counted once`],
    ...(media.bundle
      ? rowsOf('bundle', [say`${media.bundle.name}, ${media.bundle.images} images by digest`])
      : listDamage('bundle', media.bundleProblem)),
    ...listAreas(about),
    ['extents', say`${media.extents}`],
    ['index', say`${media.indexDigest ?? 'without a digest'}`],
  ];
}

type Catalogs = NonNullable<NonNullable<Inspection['media']>['catalogs']>;

const describeOperator = ({ name, bundles }: Catalogs[number]['packages'][number]): Phrase =>
  say`${`${name} ${bundles.map((one) => one.version ?? one.name).join(', ')}`}`;

/** The states of the areas, each kind once: `Ignition as built, kernel arguments customized`. */
function listAreas({ areas = [], areasProblem, configImage }: Inspection): readonly ReportRow[] {
  const statesOf = (wanted: string): string =>
    [...new Set(areas.filter(({ kind }) => kind === wanted).map(({ state }) => state))].join(
      ' or ',
    );
  const states = Object.entries({
    'Ignition': statesOf('ignition'),
    'kernel arguments': statesOf('kernel-arguments'),
    'configuration image': statesOf('config-image'),
  }).flatMap(([name, state]) => (state === '' ? [] : [`${name} ${state}`]));
  return [
    ...rowsOf('areas', states.length > 0 ? [[states.join(', ')]] : []),
    ...rowsOf(
      '',
      areas.flatMap(({ problem }) => (problem === undefined ? [] : [say`${problem}`])),
    ),
    ...listDamage('areas', areasProblem),
    ...(configImage ? listHeldImage(configImage) : []),
  ];
}
