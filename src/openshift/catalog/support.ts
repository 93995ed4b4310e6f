import { withoutUndefined } from '../../base/lists.ts';
import type { Catalog, Lifecycle, Lifecycles, LifecycleVersion } from '../../fbc/index.ts';
import { listPackages, type SelectedPackage } from './selected.ts';

/** The state of support of an operator at a version that a channel leads to. Plain JSON. */
export type OperatorSupport = {
  readonly package: string;
  /** Absent if it is the same for all versions. */
  readonly version?: string;
} & (
  | { readonly state: 'supported'; readonly phase: string; readonly until: string }
  | { readonly state: 'ended' | 'begins'; readonly day: string }
  /** Made for other releases of OpenShift; `hasOther` if another channel leads to a version that is not. */
  | { readonly state: 'excluded'; readonly madeFor: readonly string[]; readonly hasOther: boolean }
  /** Without a problem: the catalog has no metadata of the operator. */
  | { readonly state: 'unknown'; readonly problem?: string }
);

export type SupportQuestion = {
  /** `YYYY-MM-DD`. */
  readonly date: string;
  /** Minor version of OpenShift; absent if it is not known. */
  readonly minor?: string;
};

type Described = { readonly catalog: Catalog; readonly lifecycles: Lifecycles };

/**
 * For each minor version that is the head of a channel, which a Subscription installs; the default channel's
 * comes first.
 */
export function listSupport(
  { catalog, lifecycles }: Described,
  question: SupportQuestion,
): readonly OperatorSupport[] {
  const versions = new Map(
    catalog.bundles.map((bundle) => [
      JSON.stringify([bundle.package, bundle.name]),
      bundle.version ?? bundle.name,
    ]),
  );
  return listPackages(catalog).flatMap((item) => {
    const heads = listHeads(item).map(
      (head) => versions.get(JSON.stringify([item.name, head])) ?? head,
    );
    return judgeOperator(item.name, { lifecycle: lifecycles.get(item.name), heads, question });
  });
}

const listHeads = ({ channels, defaultChannel }: SelectedPackage): readonly string[] => [
  ...new Set(
    [...channels]
      .sort((a, b) => Number(b.name === defaultChannel) - Number(a.name === defaultChannel))
      .flatMap(({ head }) => head ?? []),
  ),
];

type Judged = {
  readonly lifecycle: Lifecycle | undefined;
  /** Versions. */
  readonly heads: readonly string[];
  readonly question: SupportQuestion;
};

function judgeOperator(
  name: string,
  { lifecycle, heads, question }: Judged,
): readonly OperatorSupport[] {
  if (!lifecycle || lifecycle.problem !== undefined) {
    const problem = lifecycle?.problem;
    return [{ package: name, state: 'unknown', ...withoutUndefined({ problem }) }];
  }
  const { versions } = lifecycle;
  const found = new Map(
    heads.map((version) => [minorOfBundle(version), { version, entry: find(versions, version) }]),
  );
  const entries = [...found.values()];
  const hasOther = entries.some(({ entry }) => !excludes(entry, question));
  return entries.map(({ version, entry }) => ({
    package: name,
    version,
    ...judgeVersion(entry, { ...question, hasOther }),
  }));
}

/** `2.9` of `2.9.11`; any other text is a minor version of its own. */
const minorOfBundle = (version: string): string => /^\d+\.\d+(?=\.)/.exec(version)?.[0] ?? version;

/** As in the web console: the version itself, else its minor version. */
const find = (
  versions: readonly LifecycleVersion[],
  version: string,
): LifecycleVersion | undefined =>
  versions.find(({ name }) => name === version) ??
  versions.find(({ name }) => name === minorOfBundle(version));

const listPlatforms = (entry: LifecycleVersion | undefined): readonly string[] | undefined =>
  entry?.platformCompatibility?.find(({ name }) => name === 'openshift')?.versions;

const excludes = (entry: LifecycleVersion | undefined, { minor }: SupportQuestion): boolean =>
  minor !== undefined && listPlatforms(entry)?.includes(minor) === false;

type State<S = OperatorSupport> = S extends unknown ? Omit<S, 'package' | 'version'> : never;

function judgeVersion(
  entry: LifecycleVersion | undefined,
  { hasOther, ...question }: SupportQuestion & { readonly hasOther: boolean },
): State {
  if (entry === undefined)
    return { state: 'unknown', problem: 'its lifecycle has no such version' };
  if (excludes(entry, question)) {
    return { state: 'excluded', madeFor: listPlatforms(entry) ?? [], hasOther };
  }
  return judgeDate(entry, question.date);
}

/** Both days of a phase belong to it. ISO 8601 dates sort as text. */
function judgeDate({ phases }: LifecycleVersion, date: string): State {
  const phase = phases.find(({ startDate, endDate }) => startDate <= date && date <= endDate);
  if (phase) return { state: 'supported', phase: phase.name, until: phase.endDate };
  const [first] = phases.map(({ startDate }) => startDate).sort();
  const last = phases
    .map(({ endDate }) => endDate)
    .sort()
    .at(-1);
  if (first !== undefined && date < first) return { state: 'begins', day: first };
  return last !== undefined && last < date
    ? { state: 'ended', day: last }
    : { state: 'unknown', problem: 'its lifecycle has no phase for this day' };
}
