import { checkOperators } from '../check-operators.ts';
import { checkDuplicates, checkPatterns } from '../check-rules.ts';
import { checkReferenceShape } from '../check-shapes.ts';
import { checkImageSetShape, IMAGESET_API_VERSION, IMAGESET_KIND } from './imageset-schema.ts';
import type { DocumentProblem } from '../../base/errors.ts';
import { readSchema } from '../../shape/document.ts';
import { readTexts, type View } from '../../shape/document.ts';

/** Architectures of releases in Go's words, `multi` for all of them in one image. */
const ARCHITECTURES = ['amd64', 'arm64', 'ppc64le', 's390x', 'multi'];

const FORMER_VERSION_HINT =
  `write "${IMAGESET_API_VERSION}", and list the packages that others require: ` +
  'oc-mirror v1 added them, v2 does not';

/** Everything for which oc-mirror would refuse an image set configuration. */
export function checkImageSet(view: View): readonly DocumentProblem[] {
  const { document } = view;
  if (document.isBroken) return document.problems;
  return [
    ...document.problems,
    ...checkImageSetShape(document),
    ...checkKind(view),
    ...checkPlatform(view),
    ...checkOperators(viewUnder(view, 'mirror')),
    ...checkTargets(view),
    ...checkPatterns(view, 'mirror.blockedImages'),
  ];
}

function checkKind(view: View): readonly DocumentProblem[] {
  const expected = { apiVersion: IMAGESET_API_VERSION, kind: IMAGESET_KIND };
  return Object.entries(expected).flatMap(([path, value]) => {
    const text = view.text(path);
    if (text === undefined || text === value) return [];
    const hint = text.startsWith('mirror.openshift.io/v1') ? FORMER_VERSION_HINT : undefined;
    return [view.report(path, `must be "${value}", but is "${text}"`, { hint })];
  });
}

function checkPlatform(view: View): readonly DocumentProblem[] {
  const platform = 'mirror.platform';
  const { report } = view;
  const isBoth =
    view.items(`${platform}.platforms`).length > 0 &&
    view.items(`${platform}.architectures`).length > 0;
  const both = '"platforms" and "architectures" exclude each other';
  const unknown = readTexts(view, `${platform}.architectures`)
    .filter(({ text }) => !ARCHITECTURES.includes(text))
    .map(({ path, text }) =>
      report(path, `must be one of ${ARCHITECTURES.join(', ')}, but is "${text}"`),
    );
  return [
    ...(isBoth ? [report(`${platform}.platforms`, both, { hint: 'remove "architectures"' })] : []),
    ...unknown,
    ...checkPayload(view, `${platform}.release`),
    ...checkDuplicates(view, `${platform}.channels`, '.name'),
  ];
}

function checkPayload(view: View, path: string): readonly DocumentProblem[] {
  const text = view.text(path);
  const problem = text === undefined ? undefined : checkReferenceShape(text);
  return problem === undefined ? [] : [view.report(path, problem)];
}

/** Repositories and tags of copies, by the patterns of our own keys of the same names. */
function checkTargets(view: View): readonly DocumentProblem[] {
  return (['operators', 'additionalImages'] as const).flatMap((list) =>
    Object.entries(readSchema().properties?.[list]?.items?.properties ?? {})
      .filter(([name]) => name.startsWith('target'))
      .flatMap(([name, { pattern = '' }]) =>
        readTexts(view, `mirror.${list}`, `.${name}`)
          .filter(({ text }) => !new RegExp(pattern).test(text))
          .map(({ path, text }) => view.report(path, `must match ${pattern}, but is "${text}"`)),
      ),
  );
}

/**
 * What stands below a key, as if it were the document. `full` is not in it: beside versions it is a
 * mistake in a configuration of ours, but not in an image set.
 */
function viewUnder(view: View, prefix: string): View {
  const full = (path: string): string => `${prefix}.${path}`;
  return {
    document: view.document,
    report: (place, ...rest) =>
      view.report(typeof place === 'string' ? full(place) : place, ...rest),
    text: (path) => view.text(full(path)),
    number: (path) => view.number(full(path)),
    flag: () => undefined,
    directoryOf: (path) => view.directoryOf(full(path)),
    items: (path) => view.items(full(path)).map((item) => item.slice(prefix.length + 1)),
  };
}
