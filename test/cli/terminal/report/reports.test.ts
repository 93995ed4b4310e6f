import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { toPrintableLines } from '../../../../src/base/text/words.ts';
import {
  describeInstallationBuild,
  describeInstallationPlan,
} from '../../../../src/cli/build-installation-iso.ts';
import {
  describeUpgradeBuild,
  describeUpgradePlan,
} from '../../../../src/cli/build-upgrade-iso.ts';
import { describeLiveBuild } from '../../../../src/cli/build-live-iso.ts';
import { listView } from '../../../../src/cli/catalog.ts';
import { describeIsos } from '../../../../src/cli/config-iso/build.ts';
import { describeConfigIso } from '../../../../src/cli/config-iso/show.ts';
import { describeCheck } from '../../../../src/cli/config-iso/validate.ts';
import { describeVerdict } from '../../../../src/cli/config.ts';
import { describeLocked, describeReproduced } from '../../../../src/cli/lock.ts';
import {
  describeCustomisation,
  describeDone,
} from '../../../../src/cli/medium/customize-result.ts';
import { describeWritten } from '../../../../src/cli/medium/delta.ts';
import { listInspected } from '../../../../src/cli/medium/inspect-result.ts';
import { describeRehearsal } from '../../../../src/cli/medium/rehearse.ts';
import { describeRepair } from '../../../../src/cli/medium/repair.ts';
import { describeFolder, describeVerification } from '../../../../src/cli/medium/verify-result.ts';
import { describeLivePlan } from '../../../../src/cli/plan.ts';
import {
  formatMarkdownReport,
  formatReport,
  listRows,
  type Report,
  type ReportBlock,
} from '../../../../src/cli/terminal/report.ts';
import { listImage } from '../../../../src/cli/why.ts';
import { HOST, VALUES } from './values.ts';

const withBody = (body: readonly ReportBlock[]): Report => ({ title: ['x'], body });

/** The function that describes each result. Arguments are as the values say. */
const DESCRIBE: Readonly<Record<keyof typeof VALUES, (...args: readonly never[]) => Report>> = {
  liveIso: (report, keys) =>
    describeLiveBuild(report, HOST as never, { signatures: { keys } } as never),
  installationIso: (report) => describeInstallationBuild(report, HOST as never),
  installationPlan: describeInstallationPlan,
  upgradeIso: (report) => describeUpgradeBuild(report, HOST as never),
  upgradePlan: (plan) => describeUpgradePlan(plan, HOST as never),
  livePlan: describeLivePlan,
  verification: describeVerification,
  folder: describeFolder,
  repair: describeRepair,
  delta: (output, report) => describeWritten(output, report, HOST as never),
  customised: describeDone,
  customisation: describeCustomisation,
  inspection: (inspection) => withBody(listRows({ width: 15 }, listInspected(inspection))),
  rehearsal: (name, value) => describeRehearsal(name, value, 'text'),
  configIsos: (report, options) => describeIsos(report, options, HOST as never),
  configIso: describeConfigIso,
  check: describeCheck,
  catalogView: (view) => withBody(listView(view)),
  locked: describeLocked,
  reproduced: describeReproduced,
  explainedImage: (image) => withBody(listImage(image)),
  verdict: describeVerdict,
};

const CASES = Object.entries(VALUES).flatMap(([name, list]) =>
  list.map((args, index) => ({
    file: `${name}-${index + 1}.txt`,
    report: DESCRIBE[name as keyof typeof VALUES](...(args as unknown as readonly never[])),
  })),
);

describe('a report', () => {
  it.each(CASES)('has the words of its golden text: $file', async ({ file, report }) => {
    const golden = await readFile(new URL(file, import.meta.url), 'utf8');
    expect(toPrintableLines(formatReport(report))).toBe(golden);
  });

  it.each(CASES)(
    'has every word of its text as Markdown too, and no markup of others: $file',
    ({ report }) => {
      const markdown = formatMarkdownReport(report);
      const words = (text: string): ReadonlySet<string> =>
        new Set(text.replaceAll(/\\x[0-9a-f]{2}|\\u[0-9a-f]{4}/g, ' ').match(/[\p{L}\p{N}]+/gu));
      const shown = words(markdown);
      expect([...words(formatReport(report))].filter((word) => !shown.has(word))).toEqual([]);
      // The values have a name with a code span and a control character in it.
      for (const mark of ['a|b', '\u001b']) expect(markdown).not.toContain(mark);
    },
  );
});
