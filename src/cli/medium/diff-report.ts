import { formatSize } from '../../base/text/words.ts';
import type { IgnitionPart } from '../../media/compare-configs.ts';
import {
  type ComparedImage,
  type ComparedOperator,
  countChanges,
  type Changes,
} from '../../media/compare-parts.ts';
import type {
  ComparedArguments,
  ComparedIgnition,
  MediaComparison,
  NotCompared,
} from '../../media/compare.ts';
import {
  type Phrase,
  type Report,
  type ReportTable,
  lineOf,
  summarize,
} from '../terminal/report.ts';

/** For the reader of a nightly's changelog: first five sentences, then one table per subject. */
export function describeComparison(
  comparison: MediaComparison,
  names: { readonly old: string; readonly new: string },
): Report {
  const { operators, images, same } = comparison;
  return {
    title: ['What changed from ', code(names.old), ' to ', code(names.new)],
    body: [
      ...summarize([
        ['release', describeRelease(comparison)],
        ['operators', operators ? [describeCounts(operators)] : UNKNOWN],
        ['images', images ? [describeCounts(images)] : UNKNOWN],
        ['bytes', describeBytes(comparison)],
        ['system', [describeSystem(comparison)]],
      ]),
      ...(same ? [lineOf(['note: ', describeSame(comparison)])] : []),
      ...comparison.notCompared.map((unknown) =>
        lineOf(['note: ', ...describeUnknown(unknown, names)]),
      ),
      ...(same ? [] : listTables(comparison))
        .filter(({ rows }) => rows.length > 0)
        .map((table) => ({ type: 'table', ...table }) as const),
    ],
  };
}

/** Never claims more than was compared: no bytes are read, and some media do not name theirs. */
const describeSame = ({ compared }: MediaComparison): string =>
  compared.length === 0
    ? 'nothing was compared but the sizes'
    : `no differences in what was compared: ${compared.join(', ')}`;

const code = (text: string): { readonly code: string } => ({ code: text });

const UNKNOWN: Phrase = ['unknown'];

const ARROW = ' -> ';

const describeUnknown = (
  { what, medium, reason }: NotCompared,
  names: { readonly old: string; readonly new: string },
): Phrase => [`${what} are not compared, because of `, code(names[medium]), ': ', code(reason)];

function describeRelease(comparison: MediaComparison): Phrase {
  const [old, now] = [comparison.old.release, comparison.new.release];
  if (!old || !now) return UNKNOWN;
  const isSame = old.reference === now.reference;
  const name = ({ version, architecture }: typeof old): Phrase => [
    code(version),
    ' ',
    code(architecture),
  ];
  if (isSame) return [...name(now), ', unchanged'];
  if (old.version !== now.version || old.architecture !== now.architecture) {
    return [...name(old), ARROW, ...name(now)];
  }
  const digest = ({ reference }: typeof old): Phrase[number] => code(reference.replace(/^.*@/, ''));
  return [...name(now), ', another image: ', digest(old), ARROW, digest(now)];
}

function describeCounts(changes: Changes<unknown>): string {
  const { added, removed, changed, unchanged } = changes;
  return (
    `${added.length} added, ${removed.length} removed, ${changed.length} changed, ` +
    `${unchanged} unchanged`
  );
}

function describeBytes({ bytes }: MediaComparison): Phrase {
  if (!bytes) return UNKNOWN;
  const all = bytes.new + bytes.shared;
  const share = (part: number): string => `${(all === 0 ? 100 : (100 * part) / all).toFixed(1)} %`;
  return [
    `${formatSize(bytes.new)} new, ${formatSize(bytes.shared)} shared (${share(bytes.shared)}), ` +
      `${share(bytes.inPlace)} at the same place`,
  ];
}

function describeSystem({ old, new: now, ...comparison }: MediaComparison): string {
  const { kernelArguments: words, ignition, files, configImage, notCompared } = comparison;
  const hasOtherBase = old.release && now.release && old.base !== now.base;
  const said = [
    ...(hasOtherBase ? ['base ISO changed'] : []),
    ...(words ? describeWords(words) : []),
    ...describeIgnition(ignition),
    ...describeConfigImage(configImage),
    ...(files ? describeFileCount(countChanges(files)) : []),
  ];
  if (said.length > 0) return said.join(', ');
  if (words) return 'unchanged';
  return notCompared.length > 0 ? 'unknown' : 'none: the media do not boot';
}

function describeIgnition(ignition: readonly ComparedIgnition[]): readonly string[] {
  if (ignition.every(({ state }) => state === 'unchanged')) return [];
  const parts = ignition.reduce((sum, { parts }) => sum + countChanges(parts), 0);
  return [`Ignition changed in ${parts} ${parts === 1 ? 'part' : 'parts'}`];
}

const describeConfigImage = (image: MediaComparison['configImage']): readonly string[] =>
  !image || image.state === 'unchanged' ? [] : [`configuration image ${image.state}`];

const describeFileCount = (count: number): readonly string[] =>
  count === 0 ? [] : [`${count} ${count === 1 ? 'file differs' : 'files differ'}`];

function describeWords(words: ComparedArguments): readonly string[] {
  const { old, new: now, added, removed } = words;
  if (old === now) return [];
  if (added.length + removed.length === 0) return ['kernel arguments in another order'];
  return [`kernel arguments: ${added.length} added, ${removed.length} removed`];
}

function listTables(comparison: MediaComparison): readonly ReportTable[] {
  const { operators, images, files, kernelArguments, ignition } = comparison;
  return [
    describeMedia(comparison),
    ...(operators ? [describeOperators(operators)] : []),
    ...(images ? [describeImages(images)] : []),
    ...(kernelArguments ? [describeArguments(kernelArguments)] : []),
    describeParts('systemd units', ignition, (kind) => kind === 'unit' || kind === 'drop-in'),
    describeParts('Ignition', ignition, (kind) => kind !== 'unit' && kind !== 'drop-in'),
    ...(files ? [describeFiles(files)] : []),
  ];
}

/** Describes the properties of the whole media that differ, and the bytes that they share. */
function describeMedia({ old, new: now, bytes }: MediaComparison): ReportTable {
  const values: readonly (readonly [string, string | undefined, string | undefined])[] = [
    ['product', old.product, now.product],
    ['release', old.release?.version, now.release?.version],
    ['release image', old.release?.reference, now.release?.reference],
    ['architecture', old.release?.architecture, now.release?.architecture],
    ['unsigned releases', old.unsigned?.join(', '), now.unsigned?.join(', ')],
    ['base ISO', old.base, now.base],
  ];
  const row = (what: string, old: Phrase, now: Phrase): readonly Phrase[] => [[what], old, now];
  return {
    title: 'Media',
    head: ['what', 'old', 'new'],
    rows: [
      ...values
        .filter(([, old, now]) => old !== now)
        .map(([what, old, now]) => row(what, optional(old), optional(now))),
      row('size', [formatBytes(old.size)], [formatBytes(now.size)]),
      ...(bytes
        ? [
            row('bytes of one only', [formatBytes(bytes.gone)], [formatBytes(bytes.new)]),
            row('bytes of both', [], [formatBytes(bytes.shared)]),
            row('bytes at the same place', [], [formatBytes(bytes.inPlace)]),
          ]
        : []),
    ],
  };
}

const formatBytes = (size: number): string => `${size} (${formatSize(size)})`;

const optional = (text: string | undefined): Phrase => (text === undefined ? ['-'] : [code(text)]);

/** Lists rows for all changes, the changed items first. */
const listChanged = <Item>(
  { added, removed, changed }: Changes<Item>,
  row: (change: string, old: Item | undefined, now: Item | undefined) => readonly Phrase[],
): readonly (readonly Phrase[])[] => [
  ...changed.map((pair) => row('changed', pair.old, pair.new)),
  ...added.map((item) => row('added', undefined, item)),
  ...removed.map((item) => row('removed', item, undefined)),
];

const describeOperators = (operators: Changes<ComparedOperator>): ReportTable => ({
  title: 'Operators',
  head: ['operator', 'change', 'old', 'new', 'versions', 'channels'],
  rows: listChanged(operators, (change, old, now) => {
    const { package: name } = now ?? old ?? { package: '' };
    return [
      [code(name)],
      [change],
      optional(old && describeVersion(old)),
      optional(now && describeVersion(now)),
      describeLists(old?.versions, now?.versions),
      describeLists(old?.channels, now?.channels),
    ];
  }),
});

/** The version that is installed by default; all versions if there is no default channel. */
const describeVersion = ({ version, versions }: ComparedOperator): string =>
  version ?? versions.join(', ');

/** Describes the items added to a list with `+`, the items removed from it with `-`. */
function describeLists(old: readonly string[] = [], now: readonly string[] = []): Phrase {
  const [before, after] = [new Set(old), new Set(now)];
  const changes = [
    ...[...after].filter((item) => !before.has(item)).map((item) => `+${item}`),
    ...[...before].filter((item) => !after.has(item)).map((item) => `-${item}`),
  ];
  return changes.length === 0 ? ['unchanged'] : [code(changes.join(' '))];
}

const describeImages = (images: Changes<ComparedImage>): ReportTable => ({
  title: 'Images',
  head: ['image', 'set', 'change', 'old', 'new'],
  rows: listChanged(images, (change, old, now) => {
    const { name, set } = now ?? old ?? { name: '', set: '' };
    const isRenamed = old && now && old.name !== now.name;
    return [
      isRenamed ? [code(old.name), ARROW, code(name)] : [code(name)],
      [code(set)],
      [change],
      describeDigest(old, now),
      describeDigest(now, old),
    ];
  }),
});

/** Hex digits of a digest that are shown. */
const SHORT = 12;

function describeDigest(
  image: ComparedImage | undefined,
  other: ComparedImage | undefined,
): Phrase {
  if (!image) return ['-'];
  const { digest, manifests } = image;
  const short = code(digest.replace(/^sha256:/, '').slice(0, SHORT));
  return digest === other?.digest ? [short, `, ${manifests} manifests`] : [short];
}

const describeArguments = ({ added, removed }: ComparedArguments): ReportTable => ({
  title: 'Kernel arguments',
  head: ['argument', 'change'],
  rows: [
    ...added.map((word) => [[code(word)], ['added']]),
    ...removed.map((word) => [[code(word)], ['removed']]),
  ],
});

/** Describes parts by their names alone: their content may be secret. */
const describeParts = (
  title: string,
  ignition: readonly ComparedIgnition[],
  isShown: (kind: IgnitionPart['kind']) => boolean,
): ReportTable => ({
  title,
  head: ['what', 'name', 'change', 'config'],
  rows: ignition.flatMap(({ config, parts }) =>
    listChanged(
      filterChanges(parts, ({ kind }) => isShown(kind)),
      (change, old, now) => {
        const { kind, name } = now ?? old ?? { kind: '', name: '' };
        return [[kind], [code(name)], [change], [config]];
      },
    ),
  ),
});

const filterChanges = <Item>(
  { added, removed, changed, unchanged }: Changes<Item>,
  isShown: (item: Item) => boolean,
): Changes<Item> => ({
  added: added.filter(isShown),
  removed: removed.filter(isShown),
  changed: changed.filter((pair) => isShown(pair.new)),
  unchanged,
});

const describeFiles = (files: Changes<{ readonly path: string }>): ReportTable => ({
  title: 'Files outside of the registry',
  head: ['file', 'change'],
  rows: listChanged(files, (change, old, now) => [[code((now ?? old)?.path ?? '')], [change]]),
});
