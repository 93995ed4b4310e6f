import { stringify } from 'yaml';
import { ConfigProblems, isError, type DocumentProblem } from '../../base/errors.ts';
import { createView, type View } from '../../shape/document.ts';
import { readConfiguration } from '../../shape/configuration.ts';
import { TRANSPORT } from '../rules.ts';
import { harmless, type ImportNote, isLoss, type Written } from './notes.ts';
import { importAdditionalImages, importBlockedImages, importOperators } from './parts.ts';
import { type ImportedRelease, importPlatform } from './platform.ts';
import { checkImageSet, IMAGE_SET, noteFormerVersion } from './rules.ts';

/* Owns the conversion of oc-mirror's image sets into configurations. */

/** An appliance configuration; `pullSecret` names the same file as in the template of `sealift init`. */
export type ImportedConfig = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly ocpRelease: ImportedRelease & { readonly version: string };
  readonly pullSecret: string;
  readonly additionalImages: readonly Written[];
  readonly blockedImages: readonly Written[];
  readonly operators: readonly Written[];
};

export type ImportedImageSet = {
  readonly config: ImportedConfig;
  /** Settings without a counterpart, the most harmful first. */
  readonly notes: readonly ImportNote[];
};

/** Version if the image set does not name one; a note reports that. */
const PLACEHOLDER_VERSION = '4.21';

/**
 * `file` is the name of the image set in problems and notes.
 *
 * @throws ConfigProblems `config.problems` if oc-mirror would refuse it
 */
export function importImageSet(text: string, file: string): ImportedImageSet {
  const view = createView(readConfiguration({ text, file }, IMAGE_SET), {
    hidden: { prefix: TRANSPORT, at: /^(?!mirror\.blockedImages)/ }, // patterns are unchanged
  });
  const problems = sortByPlace(checkImageSet(view));
  if (problems.length > 0) throw new ConfigProblems(file, problems);
  const release = importPlatform(view);
  const { cpuArchitecture } = release.value;
  const operators = importOperators(view, cpuArchitecture);
  const additional = importAdditionalImages(view, cpuArchitecture);
  const blocked = importBlockedImages(view);
  return {
    config: {
      apiVersion: 'v1beta1',
      kind: 'ApplianceConfig',
      ocpRelease: { version: PLACEHOLDER_VERSION, ...release.value },
      pullSecret: 'file:pull-secret.json',
      additionalImages: additional.value,
      blockedImages: blocked.value,
      operators: operators.value,
    },
    notes: sortByHarm([
      ...noteRest(view),
      ...release.notes,
      ...operators.notes,
      ...additional.notes,
      ...blocked.notes,
    ]).map((note) => (isError(note) ? { ...note, severity: 'warning' } : note)),
  };
}

/** A commented file to edit further; `origin` names the source of the configuration. */
export function renderImportedConfig(
  { ocpRelease, pullSecret, additionalImages, blockedImages, operators, ...head }: ImportedConfig,
  origin: string,
): string {
  return [
    `# Made from ${oneLine(origin)}. Check it: sealift validate\n${formatYaml(head)}`,
    formatYaml({ ocpRelease }),
    '# Credentials to fetch with; they do not go on the media. The JSON text, file:PATH or env:NAME.\n' +
      formatYaml({ pullSecret }),
    '# Public keys for the user core, one a line, or file:PATH or env:NAME.\n' +
      '# sshKey: file:id_ed25519.pub\n',
    ...formatList('Operators to carry, by catalog.', { operators }),
    ...formatList('Images to carry besides the release.', { additionalImages }),
    ...formatList('Images to leave out: regular expressions.', { blockedImages }),
  ].join('\n');
}

function noteRest(view: View): readonly ImportNote[] {
  const { report } = view;
  const charts = ['mirror.helm.repositories', 'mirror.helm.local'].filter(
    (path) => view.items(path).length > 0,
  );
  return [
    ...noteFormerVersion(view).map(harmless),
    ...(view.number('archiveSize') === undefined
      ? []
      : [harmless(report('archiveSize', 'sealift makes one ISO, not archives of a given size'))]),
    ...charts.map((path) =>
      report(path, 'Helm charts are not carried', {
        hint: 'name their images in additionalImages',
      }),
    ),
    ...(view.items('mirror.samples').length > 0
      ? [report('mirror.samples', 'samples are not carried')]
      : []),
  ];
}

const formatList = (
  comment: string,
  list: Readonly<Record<string, readonly Written[]>>,
): string[] =>
  Object.values(list).every((items) => items.length === 0)
    ? []
    : [`# ${comment}\n${formatYaml(list)}`];

const formatYaml = (value: object): string => stringify(value, { lineWidth: 0 });

const oneLine = (text: string): string => text.replaceAll(/\p{Cc}/gu, '?');

/** Places of losses, the most harmful first; the comments say what the media are then without. */
const HARM = [
  /^mirror\.platform(?:\.release|\.channels\[\d+\]\.(?:name|type|maxVersion))?$/, // the right release
  /^mirror\.(?:operators|additionalImages)\[\d+\]\.(?:catalog|name)$/, // whole entries
  /^mirror\.(?:operators|additionalImages)/, // parts of entries
  /^mirror\.helm/,
  /^mirror\.platform\.(?:architectures|platforms|kubeVirtContainer)/,
  /^mirror\.platform\.channels/, // earlier releases
];

/** Sorts losses by their harm, then by place; notes come last. */
const sortByHarm = (notes: readonly ImportNote[]): readonly ImportNote[] => {
  const harmOf = (note: ImportNote): number => {
    const rank = HARM.findIndex((pattern) => pattern.test(note.path));
    return (isLoss(note) ? 0 : HARM.length + 1) + (rank === -1 ? HARM.length : rank);
  };
  return sortByPlace(notes).toSorted((a, b) => harmOf(a) - harmOf(b));
};

const sortByPlace = <T extends DocumentProblem>(problems: readonly T[]): readonly T[] =>
  problems.toSorted((a, b) => a.line - b.line || a.column - b.column);
