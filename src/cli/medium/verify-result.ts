import { formatNames } from '../../base/errors.ts';
import { groupBy } from '../../base/lists.ts';
import { formatSize } from '../../base/text/words.ts';
import { formatDeltaName } from '../../media/delta/describe.ts';
import type { Verification } from '../../media/verify-contents.ts';
import type { Sample } from '../../media/sample-extents.ts';
import type { FolderVerification } from '../../media/verify-sites.ts';
import { BARE } from './customize-result.ts';
import {
  type Report,
  type ReportBlock,
  lineOf,
  say,
  listShown,
  quoteProblems,
} from '../terminal/report.ts';

/* The result of `sealift verify`, in words. */

export const describeFolder = (folder: string, { isos, damaged }: FolderVerification): Report => ({
  title: say`Verification of ${folder}`,
  body: [
    ...listShown(
      damaged.map(({ iso, problem }) => lineOf(say`${iso}: ${problem}`)),
      SHOWN_PROBLEMS_OF_KIND,
    ),
    ...(damaged.length === 0
      ? [
          lineOf(
            say`${folder} is whole: every byte of ${countThings(isos, 'configuration ISO')} was compared`,
          ),
        ]
      : []),
  ],
});

/** Most problems shown of each kind: a medium that was cut off lost thousands of files. */
export const SHOWN_PROBLEMS_OF_KIND = 20;

export function describeVerification(iso: string, verification: Verification): Report {
  const { problems, damagedImages, oddities, sample } = verification;
  const { ok, notCompared = [], mediumDigest } = verification;
  const byKind = groupBy(problems, ({ kind }) => kind);
  return {
    title: say`Verification of ${iso}`,
    body: [
      ...[...byKind].flatMap(([kind, found]) =>
        listShown(quoteProblems(found), SHOWN_PROBLEMS_OF_KIND, `${kind}: `),
      ),
      ...oddities.map((oddity) => lineOf(say`note: ${oddity}`)),
      ...(damagedImages.length === 0
        ? []
        : [lineOf(say`damaged images: ${formatNames(damagedImages)}`)]),
      ...(ok ? describeValues(iso, verification) : []),
      ...(ok ? notCompared.map((part) => lineOf(say`not compared: ${part}`)) : []),
      ...(sample ? listSample(sample) : []),
      ...(ok && mediumDigest !== undefined ? [lineOf(say`medium digest ${mediumDigest}`)] : []),
      lineOf(say`${iso} is ${[formatState(verification)]}`),
    ],
  };
}

function formatState({ state, problems, compared, checked, delta }: Verification): string {
  if (state === 'damaged') return `damaged: ${countThings(problems, 'problem')}`;
  const what = delta
    ? formatDeltaName(delta)
    : `structure, ${countThings(checked.extents, 'extent')} (${formatSize(checked.bytes)}), ${countThings(checked.images, 'image')}`;
  return state === 'whole'
    ? `whole: ${what}; every byte was compared`
    : `not provable: ${what}; nothing is wrong in the ${formatSize(compared.bytes)} of ` +
        `${formatSize(compared.of)} that were compared`;
}

function describeValues(
  iso: string,
  { customised, bare, areas = [] }: Verification,
): readonly ReportBlock[] {
  if (bare === true) return [lineOf(say`${iso} is bare: ${[BARE]}`)];
  if (customised !== true) return [];
  const isDropped = areas.some(({ kind, state }) => kind === 'built' && state === 'bare');
  return [
    lineOf(
      isDropped
        ? say`${iso} has no copy of its build: its values may be those of the build or of a site`
        : say`${iso} is customised: it has other values than the build gave it`,
    ),
  ];
}

const listSample = ({ seed, bytes, extents, confidence }: Sample): readonly ReportBlock[] => [
  lineOf(
    say`sampled out of ${countThings(extents, 'extent')} (${formatSize(bytes)}), --sample-seed ${seed}`,
  ),
  ...confidence.map(({ damaged, scattered, together }) =>
    lineOf([
      `if ${damaged * 100} % of the bytes were damaged, this would have found it with a probability of ` +
        `at least ${formatChance(together)}, or ${formatChance(scattered)} if the damage is scattered in ` +
        'single blocks',
    ]),
  ),
];

/** Formats a probability as a percentage, rounded down so that it never promises too much. */
const formatChance = (chance: number): string => `${Math.floor(chance * 10_000) / 100} %`;

export function countThings(what: number | readonly unknown[], word: string): string {
  const number = typeof what === 'number' ? what : what.length;
  return `${number} ${word}${number === 1 ? '' : 's'}`;
}
