import type { View } from '../../config/document/view.ts';
import type { ConfigRule } from '../../config/load-config.ts';
import { LIVE_ISO_RULES } from '../live-iso/live-iso-rules.ts';

/** What makes hosts that no upgrade ISO can reach, and why. */
const REFUSED = [
  {
    path: 'enableInteractiveFlow',
    problem: 'clusters of interactive media cannot be upgraded from an upgrade ISO',
    reason: 'their hosts know no registry but localhost:22625; use a mirror registry of the site',
  },
  {
    path: 'skipLocalRegistry',
    problem: 'hosts without the local registry cannot be upgraded from an upgrade ISO',
    reason: 'they have neither the registry image nor the name of the registry',
  },
  {
    path: 'stopLocalRegistry',
    problem: 'hosts that stop the local registry cannot be upgraded from an upgrade ISO',
    reason: 'their clusters have no mirrors that lead to it any more',
  },
] as const;

/** Everything that the stages of an upgrade ISO would refuse without having asked the network. */
export const UPGRADE_ISO_RULES: readonly ConfigRule[] = [
  ...LIVE_ISO_RULES,
  refuseUnreachable,
  refuseMirrorPath,
];

function refuseUnreachable(view: View): ReturnType<ConfigRule> {
  const problems = REFUSED.filter(({ path }) => view.flag(path) === true).map(
    ({ path, problem, reason }) => view.document.report.at(path, problem, reason),
  );
  return { problems, notes: [] };
}

function refuseMirrorPath({ text, document }: View): ReturnType<ConfigRule> {
  if (text('mirrorPath') === undefined) return { problems: [], notes: [] };
  const problem = 'an upgrade ISO cannot be built from an existing mirror yet';
  const hint = 'remove "mirrorPath"; images are fetched from their registries';
  return { problems: [document.report.at('mirrorPath', problem, hint)], notes: [] };
}
