import { withoutUndefined } from '../../base/lists.ts';

/** The parts of a rehearsal, in the order in which hosts meet them. */
export const PARTS = [
  'boot',
  'ignition',
  'registry',
  'pulls',
  'installer',
  'hosts',
  'operators',
  'upgrade',
] as const;

export type RehearsedPart = (typeof PARTS)[number];

/** `unknown`: the medium alone does not decide it. */
export type Outcome = 'will' | 'will-not' | 'unknown';

/** Something that happens on the way from the firmware to a cluster, or does not. Plain JSON. */
export type RehearsedStep = {
  readonly part: RehearsedPart;
  /** A sentence that is true if the step happens. */
  readonly name: string;
  readonly outcome: Outcome;
  /** Absent for a step that will happen and needs no explanation. */
  readonly reason?: string;
  /** File of the medium, of a config or of an image that decides it. */
  readonly place?: string;
};

type About = { readonly reason?: string | undefined; readonly place?: string | undefined };

const outcomeOf =
  (outcome: Outcome) =>
  (part: RehearsedPart, name: string, about: About = {}): RehearsedStep => ({
    part,
    name,
    outcome,
    ...withoutUndefined(about),
  });

export const will = outcomeOf('will');
export const willNot = outcomeOf('will-not');
export const cannotKnow = outcomeOf('unknown');

/** A step that happens unless something is named that prevents it. */
export const unless = (part: RehearsedPart, name: string, about: About): RehearsedStep =>
  about.reason === undefined ? will(part, name) : willNot(part, name, about);

/** Problems of one kind that become steps; the others are counted. */
const MOST_NAMED = 50;

/** One step without the problems, or one for each of them. */
export function unlessAny(
  part: RehearsedPart,
  name: string,
  problems: readonly About[],
): readonly RehearsedStep[] {
  if (problems.length === 0) return [will(part, name)];
  const more = problems.length - MOST_NAMED;
  return [
    ...problems.slice(0, MOST_NAMED),
    ...(more > 0 ? [{ reason: `and ${more} more` }] : []),
  ].map((about) => willNot(part, name, about));
}
