import { stringify } from 'yaml';
import { ConfigProblems, isError, type DocumentProblem } from '../../base/errors.ts';
import { createView, type View } from '../../shape/document.ts';
import { readConfiguration } from '../../shape/configuration.ts';
import { harmless, type ImportNote, type Written } from './notes.ts';
import { importAdditionalImages, importBlockedImages, importOperators } from './parts.ts';
import { type ImportedRelease, importPlatform } from './platform.ts';
import { checkImageSet, IMAGE_SET } from './rules.ts';

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
  /** Settings without a counterpart, in the order of the file. */
  readonly notes: readonly ImportNote[];
};

/** Version if the image set does not name one; a note reports that. */
const PLACEHOLDER_VERSION = '4.21';

/**
 * Converts oc-mirror's ImageSetConfiguration v2alpha1 into an appliance configuration. `file` is its name
 * in problems and notes.
 *
 * @throws ConfigProblems `config.problems` if oc-mirror would refuse it
 */
export function importImageSet(text: string, file: string): ImportedImageSet {
  const view = withoutTransport(createView(readConfiguration({ text, file }, IMAGE_SET)));
  const problems = sortByPlace(checkImageSet(view));
  if (problems.length > 0) throw new ConfigProblems(file, problems);
  const release = importPlatform(view);
  const operators = importOperators(view);
  const additional = importAdditionalImages(view);
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
    notes: sortByPlace([
      ...noteRest(view),
      ...release.notes,
      ...operators.notes,
      ...additional.notes,
      ...blocked.notes,
    ]).map((note) => (isError(note) ? { ...note, severity: 'warning' } : note)),
  };
}

/**
 * Renders an imported configuration as a commented file to edit further. `origin` names its source.
 */
export function renderImportedConfig(
  { ocpRelease, pullSecret, additionalImages, blockedImages, operators, ...head }: ImportedConfig,
  origin: string,
): string {
  return [
    `# Made from ${oneLine(origin)}. Check it: sealift validate\n${formatYaml(head)}`,
    formatYaml({ ocpRelease }),
    '# Credentials to fetch with; they do not go on the media. The JSON text, file:PATH or env:NAME.\n' +
      formatYaml({ pullSecret }),
    '# One public key line for the user core, or file:PATH or env:NAME.\n' +
      '# sshKey: file:id_ed25519.pub\n',
    ...formatList('Operators to carry, by catalog.', { operators }),
    ...formatList('Images to carry besides the release.', { additionalImages }),
    ...formatList('Images to leave out: regular expressions.', { blockedImages }),
  ].join('\n');
}

/** oc-mirror accepts references with and without `docker://`; patterns of blocked images are unchanged. */
const withoutTransport = (view: View): View => ({
  ...view,
  text: (path) => {
    const text = view.text(path);
    return path.startsWith('mirror.blockedImages') ? text : text?.replace(/^docker:\/\//, '');
  },
});

function noteRest(view: View): readonly ImportNote[] {
  const { report } = view;
  const charts = ['mirror.helm.repositories', 'mirror.helm.local'].filter(
    (path) => view.items(path).length > 0,
  );
  return [
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

const sortByPlace = <T extends DocumentProblem>(problems: readonly T[]): readonly T[] =>
  problems.toSorted((a, b) => a.line - b.line || a.column - b.column);
