import { listUnknownKeys } from '../openshift/release/gated-path.ts';
import type { Gate } from '../openshift/release/gates.ts';
import type { UpgradeIsoPlan } from '../stages/report/upgrade-iso.ts';
import { gap, lineOf, listRows, say, type ReportBlock } from './terminal/report.ts';

/* This file owns the lines that name the gates of an upgrade. */

type Gated = Pick<UpgradeIsoPlan, 'gates' | 'acknowledged'>;

export function explainGates({ gates, acknowledged }: Gated): readonly ReportBlock[] {
  const unknown = listRows(
    { width: 10 },
    listUnknownKeys(acknowledged, gates).map((key) => [
      'warning',
      say`${key} is acknowledged only if the cluster asks for it: no known release does`,
    ]),
  );
  if (gates.length === 0) return [...unknown, ...(unknown.length > 0 ? [gap] : [])];
  return [
    lineOf([
      'What stops the cluster, and the command that lets it through (sealift help upgrade):',
    ]),
    ...gates.flatMap((gate) => describeGate(gate, acknowledged)),
    ...unknown,
    gap,
  ];
}

const WORDS: Readonly<Record<Gate['certainty'], string>> = {
  certain: 'stops',
  possible: 'may stop',
  unknown: 'cannot be known',
};

function describeGate(gate: Gate, acknowledged: readonly string[]): readonly ReportBlock[] {
  const { kind, certainty, key, from, to, text, url, command } = gate;
  const name = key === undefined ? kind : `${kind} ${key}`;
  const isDone = key !== undefined && acknowledged.includes(key);
  const link = url !== undefined && !text.includes(url) ? ` ${url}` : '';
  return [
    lineOf(say`${from} -> ${to}: ${name}, ${[WORDS[certainty]]}`, 2),
    lineOf(say`${text.replaceAll(/\s+/g, ' ') + link}`, 4),
    lineOf(isDone ? ['accepted by the MachineConfig (--acknowledge)'] : say`${command}`, 4),
  ];
}
