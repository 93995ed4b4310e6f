import { toPrintable } from '../base/text/words.ts';
import { listUnknownKeys } from '../openshift/release/gated-path.ts';
import type { Gate } from '../openshift/release/gates.ts';
import type { UpgradeIsoPlan } from '../stages/report/upgrade-iso.ts';

/* This file owns the lines that name the gates of an upgrade. */

type Gated = Pick<UpgradeIsoPlan, 'gates' | 'acknowledged'>;

/**
 * Formats every gate with its reason and its command, under a title. Reasons come from payloads and
 * from the update graph, so they must not control the terminal.
 */
export function formatGates({ gates, acknowledged }: Gated): readonly string[] {
  const unknown = listUnknownKeys(acknowledged, gates).map(
    (key) =>
      `warning   ${toPrintable(key)} is acknowledged only if the cluster asks for it: no known release does`,
  );
  if (gates.length === 0) return [...unknown, ...(unknown.length > 0 ? [''] : [])];
  return [
    'What stops the cluster, and the command that lets it through (sealift help upgrade):',
    ...gates.flatMap((gate) => formatGate(gate, acknowledged)),
    ...unknown,
    '',
  ];
}

const WORDS: Readonly<Record<Gate['certainty'], string>> = {
  certain: 'stops',
  possible: 'may stop',
  unknown: 'cannot be known',
};

function formatGate(gate: Gate, acknowledged: readonly string[]): readonly string[] {
  const { kind, certainty, key, from, to, text, url, command } = gate;
  const name = key === undefined ? kind : `${kind} ${key}`;
  const isDone = key !== undefined && acknowledged.includes(key);
  const link = url !== undefined && !text.includes(url) ? ` ${url}` : '';
  return [
    `  ${from} -> ${to}: ${toPrintable(name)}, ${WORDS[certainty]}`,
    `    ${toPrintable(text.replaceAll(/\s+/g, ' ') + link)}`,
    `    ${isDone ? 'accepted by the MachineConfig (--acknowledge)' : toPrintable(command)}`,
  ];
}
