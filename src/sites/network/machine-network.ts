import semver from 'semver';
import type { DocumentProblem } from '../../base/errors.ts';
import type { Report } from '../../shape/report.ts';
import { required } from '../../shape/report.ts';
import type { WrittenInstallConfig } from '../document/site-shapes.ts';
import { listMachineNetworks } from './networks.ts';

/** The first seed whose node compares its machine networks with those of the seed. */
const FIRST_COMPARED = '4.20.0-0';

type Seed = {
  /** `X.Y` or `X.Y.Z`; absent where nobody said it. */
  readonly seedVersion?: string;
};

/**
 * A machine network is what the node chooses its addresses by. It stops without one when it has a
 * proxy, for which it computes noProxy, and from 4.20 on always (lifecycle-agent, post-pivot).
 */
export function checkMachineNetwork(
  report: Report,
  written: WrittenInstallConfig,
  seed: Seed,
): readonly DocumentProblem[] {
  const why = explainNeed(written, seed);
  return why === undefined ? [] : [reportMissing(report, required(why))];
}

/** Older nodes take the first address that they find. */
export function warnOfMachineNetwork(
  report: Report,
  written: WrittenInstallConfig,
  seed: Seed,
): readonly DocumentProblem[] {
  if (hasNetworks(written) || explainNeed(written, seed) !== undefined) return [];
  const problem =
    'no machineNetwork is written: the node cannot tell which of its addresses to use, ' +
    'and stops if its seed is 4.20 or later';
  return [reportMissing(report, problem)];
}

function explainNeed(written: WrittenInstallConfig, { seedVersion }: Seed): string | undefined {
  if (hasNetworks(written)) return undefined;
  if (written.proxy) return 'with a proxy the node stops without machineNetwork';
  const seed = semver.coerce(seedVersion ?? '');
  return seed && semver.gte(seed, FIRST_COMPARED)
    ? `nodes of a seed ${seedVersion ?? ''} stop without machineNetwork`
    : undefined;
}

const hasNetworks = ({ networking }: WrittenInstallConfig): boolean =>
  listMachineNetworks(networking).length > 0;

const reportMissing = (report: Report, problem: string): DocumentProblem =>
  report('networking', problem, {
    shownPath: 'networking.machineNetwork',
    hint: 'write the networks that the node has its addresses in',
  });
