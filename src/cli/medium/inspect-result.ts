import { formatSize, toPrintable } from '../../base/text/words.ts';
import {
  type DeltaDescription,
  type DeltaEnd,
  formatDeltaName,
  formatEnd,
} from '../../media/delta/describe.ts';
import type { Inspection } from '../../media/inspect.ts';

/* The lines that `inspect` prints. */

export const formatDeltaText = (delta: DeltaDescription): string =>
  delta.kind === 'delta'
    ? [
        `kind           delta, ${formatSize(delta.size)}`,
        `from           ${toPrintable(formatEnd(delta.from))}`,
        ...formatEndDigest(delta.from),
        `to             ${toPrintable(formatEnd(delta.to))}, ${formatSize(delta.to.size)}`,
        ...formatEndDigest(delta.to),
        `patches        ${delta.patches}`,
        '',
      ].join('\n')
    : `kind           ${formatDeltaName(delta)}, ${formatSize(delta.size)}\n`;

/** Formats the digest of an ISO whose name is known; it is printed instead of the name otherwise. */
const formatEndDigest = ({ product, digest }: DeltaEnd): readonly string[] =>
  product === undefined ? [] : [`  index        ${digest}`];

export function formatInspection(inspection: Inspection): string {
  const { volume, extensions, size } = inspection;
  const names = [extensions.rockRidge && 'Rock Ridge', extensions.joliet && 'Joliet'];
  return [
    `volume         ${volume.id}, ${formatSize(volume.size)} of ${formatSize(size)}`,
    `extensions     ${names.filter(Boolean).join(', ') || 'none'}`,
    ...inspection.bootEntries.map(
      ({ platform, loadSectors, offset }) =>
        `boot           ${platform}: ${loadSectors} sectors from byte ${offset}`,
    ),
    ...inspection.partitions.map(
      (partition) =>
        `partition      ${partition.table} ${partition.type}: ${formatSize(partition.size)} from byte ${partition.offset}`,
    ),
    ...formatProblem('partitions', inspection.partitionsProblem),
    ...formatCoreos(inspection),
    ...formatMedia(inspection),
    '',
  ].join('\n');
}

const formatProblem = (what: string, problem: string | undefined): readonly string[] =>
  problem === undefined ? [] : [`${what.padEnd(15)}damaged: ${problem}`];

function formatCoreos({ coreos, notCoreos }: Inspection): string[] {
  if (!coreos) return [`coreos         not a CoreOS live ISO: ${notCoreos ?? 'no sign of one'}`];
  const { embedArea, bootstrapProblem } = coreos;
  const bootstrap = coreos.bootstrapIgnition ? 'a config in a separate initrd' : 'none';
  return [
    `embed area     ${formatSize(embedArea.used)} of ${formatSize(embedArea.size)} used in ` +
      `${embedArea.file}${embedArea.grown ? ', grown' : ''}: ${describeEmbedded(coreos)}`,
    ...(bootstrapProblem === undefined ? [`bootstrap      ${bootstrap}`] : []),
    ...formatProblem('bootstrap', bootstrapProblem),
    ...(coreos.osStream === undefined ? [] : [`OS stream      ${coreos.osStream}`]),
    `kernel args    ${coreos.kargs}`,
    ...(coreos.kargs === coreos.defaultKargs ? [] : [`  default      ${coreos.defaultKargs}`]),
  ];
}

function describeEmbedded({ embedArea, ignition }: NonNullable<Inspection['coreos']>): string {
  if (embedArea.problem !== undefined) return `damaged: ${embedArea.problem}`;
  return ignition ? 'a config is embedded' : 'no config is embedded';
}

function formatMedia(inspection: Inspection): readonly string[] {
  const { media, mediaProblem, proof, product } = inspection;
  if (media) return formatIndexed(media, inspection);
  if (mediaProblem !== undefined) return formatProblem('index', mediaProblem);
  const maker = proof
    ? [
        `made by        sealift ${proof.program}: ${product}`,
        `of             ${proof.of}`,
        `proof          ${proof.digest}`,
      ]
    : [`made by        not sealift${DESCRIBED[product] ?? ''}`];
  return [...maker, ...formatAreas(inspection)];
}

const DESCRIBED: Readonly<Record<string, string>> = {
  'coreos-live': ': a live ISO of CoreOS',
  'minimal-iso': ': a minimal live ISO of CoreOS, which fetches its root file system',
};

function formatIndexed(
  media: NonNullable<Inspection['media']>,
  about: Inspection,
): readonly string[] {
  const { release, sizes, program } = media;
  return [
    `made by        sealift${program === undefined ? '' : ` ${program}`}: ${media.product}`,
    `release        ${release.version} ${release.architecture}`,
    `               ${release.reference}`,
    ...(media.unsigned ?? []).map((version) => `signature      ${version} is unsigned`),
    ...Object.entries(media.images).map(
      ([set, count]) => `images         ${set}: ${count}, ${formatSize(sizes[set] ?? 0)}`,
    ),
    ...(media.catalogs ?? []).flatMap(({ packages }) => packages.map(formatOperator)),
    `payload        ${formatSize(media.payloadSize)}, shared blobs counted once`,
    ...(media.bundle
      ? [`bundle         ${media.bundle.name}, ${media.bundle.images} images by digest`]
      : formatProblem('bundle', media.bundleProblem)),
    ...formatAreas(about),
    `extents        ${media.extents}`,
    `index          ${media.indexDigest ?? 'without a digest'}`,
  ];
}

type Catalogs = NonNullable<NonNullable<Inspection['media']>['catalogs']>;

const formatOperator = ({ name, bundles }: Catalogs[number]['packages'][number]): string =>
  `operator       ${toPrintable(`${name} ${bundles.map((one) => one.version ?? one.name).join(', ')}`)}`;

/** Formats the states of the areas, each kind once: `Ignition as built, kernel arguments customized`. */
function formatAreas({ areas = [], areasProblem }: Inspection): readonly string[] {
  const statesOf = (wanted: string): string =>
    [...new Set(areas.filter(({ kind }) => kind === wanted).map(({ state }) => state))].join(
      ' or ',
    );
  const states = Object.entries({
    'Ignition': statesOf('ignition'),
    'kernel arguments': statesOf('kernel-arguments'),
  }).flatMap(([name, state]) => (state === '' ? [] : [`${name} ${state}`]));
  return [
    ...(states.length > 0 ? [`areas          ${states.join(', ')}`] : []),
    ...areas.flatMap(({ problem }) => (problem === undefined ? [] : [`               ${problem}`])),
    ...formatProblem('areas', areasProblem),
  ];
}
