import { formatNames } from '../../base/errors.ts';
import {
  listSupport,
  type OperatorSupport,
  type SupportQuestion,
} from '../../openshift/catalog/support.ts';
import type { CarriedCatalog } from '../named-images.ts';
import { cannotKnow, type RehearsedStep, will, willNot } from './step.ts';

const PART = 'operators';

/** Plays the support of operators, as the catalogs of the medium describe it. */
export function rehearseOperators(
  catalogs: readonly CarriedCatalog[],
  question: SupportQuestion,
): readonly RehearsedStep[] {
  const found = catalogs.flatMap((one) =>
    listSupport(one, question).map((support) => ({ place: one.name, support })),
  );
  const silent = found.filter(({ support }) => isSilent(support));
  return [
    ...found
      .filter(({ support }) => !isSilent(support))
      .map(({ place, support }) => describe(support, question, place)),
    ...describeSilent(
      silent.map(({ support }) => support.package),
      question,
    ),
  ];
}

const isSilent = (support: OperatorSupport): boolean =>
  support.state === 'unknown' && support.problem === undefined;

/** The end of a step's name. */
const when = ({ date, minor }: SupportQuestion): string =>
  minor === undefined ? `on ${date}` : `with OpenShift ${minor} on ${date}`;

function describe(
  support: OperatorSupport,
  question: SupportQuestion,
  place: string,
): RehearsedStep {
  const { package: name, version } = support;
  const operator = version === undefined ? name : `${name} ${version}`;
  const step = `operator ${operator} is supported ${when(question)}`;
  switch (support.state) {
    case 'supported':
      return will(PART, step, { place, reason: `${support.phase} until ${support.until}` });
    case 'ended':
      return cannotKnow(PART, step, { place, reason: `its support ended on ${support.day}` });
    case 'begins':
      return cannotKnow(PART, step, { place, reason: `its support begins on ${support.day}` });
    case 'excluded':
      return describeExcluded(step, support, place);
    case 'unknown':
      return cannotKnow(PART, step, {
        place,
        reason: `its catalog does not tell: ${support.problem ?? ''}`,
      });
  }
}

/** OLM installs it all the same, so this fails only if no channel leads to another version. */
function describeExcluded(
  step: string,
  { madeFor, hasOther }: Extract<OperatorSupport, { readonly state: 'excluded' }>,
  place: string,
): RehearsedStep {
  const reason = `its maker names OpenShift ${formatNames(madeFor)}`;
  return hasOther
    ? cannotKnow(PART, step, {
        place,
        reason: `${reason}; another channel leads to a version without this limit`,
      })
    : willNot(PART, step, { place, reason: `${reason}, and no channel leads further` });
}

function describeSilent(
  names: readonly string[],
  question: SupportQuestion,
): readonly RehearsedStep[] {
  if (names.length === 0) return [];
  const operators = names.length === 1 ? '1 operator' : `${names.length} operators`;
  const step = `the support ${when(question)} of ${operators} without lifecycle metadata is known`;
  return [
    cannotKnow(PART, step, { reason: `the catalogs do not have it for ${formatNames(names)}` }),
  ];
}
