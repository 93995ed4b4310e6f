import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Keyfile, normaliseKeyfile } from '../../../src/nmstate/keyfile.ts';
import { explainDifferences } from '../../../src/nmstate/network-manager.ts';
import { judgeNetwork, planNetwork } from '../../../src/nmstate/plan.ts';
import { findNetworkTool, type MadeProfiles } from '../../../src/nmstate/tool.ts';
import { parse } from '../../../src/shape/parse-text.ts';
import { NETWORK_DIFFERENCES } from '../../support/network-differences.ts';
import { runs } from '../../support/properties.ts';
import { requireTool } from '../../support/tools.ts';
import { findJudge } from '../find-judge.ts';
import { anyNetwork } from './random-networks.ts';
import { OF_OLDER, OTHER_PROFILES, REFUSED_ALONE } from './differences.ts';

const hasNmcli = requireTool('nmcli');
/** The folder of the older judge. */
const OLDER = 'nmstatectl-older';
const JUDGED = '../shared/data/judged/nmstate';
const { signal } = new AbortController();

/** NetworkManager's objections to profiles, by their text; random documents repeat many. */
const asked = new Map<string, string>();

/** NetworkManager's objection to a profile; empty if it takes it. */
function askNetworkManager({ content }: Keyfile): string {
  const said = asked.get(content) ?? runNetworkManager(content);
  asked.set(content, said);
  return said;
}

function runNetworkManager(content: string): string {
  try {
    const args = ['--offline', 'connection', 'modify', 'connection.stable-id', 'x'];
    execFileSync('nmcli', args, { input: content, stdio: 'pipe', encoding: 'utf8' });
    return '';
  } catch (error) {
    return String((error as { readonly stderr?: unknown }).stderr ?? error);
  }
}

type Case = { readonly name: string; readonly document: string };
type Answer = { readonly said: string; readonly fault?: string };

/** Our answer to one document beside theirs: what was said, and the fault if it is ours. */
async function compare({ name, document }: Case, made: MadeProfiles): Promise<Answer> {
  const host = { networkConfig: document, interfaces: [] };
  const { profiles, verdict } = await planNetwork(host, { signal });
  const [problem] = verdict.problems;
  if (problem && verdict.untranslated.length > 0 && problem.hint !== undefined) {
    return { said: 'needs nmstate' };
  }
  if (problem) return judgeRefusal(name, problem.problem, isTaken(made));
  if ('problem' in made) {
    if (made.isUnread) return { said: 'nmstatectl prints no valid YAML' };
    return explainListed([], { name, said: 'only nmstate refuses it', fault: made.problem });
  }
  const refused = profiles.map(askNetworkManager).find((said) => said !== '');
  if (refused !== undefined) return { said: 'NetworkManager refuses it', fault: refused };
  const [different] = explainDifferences(profiles, made.profiles.map(normaliseKeyfile));
  return different
    ? explainListed(OTHER_PROFILES, { name, said: 'other profiles', fault: different.problem })
    : { said: 'the same profiles' };
}

const isTaken = (made: MadeProfiles): boolean =>
  'profiles' in made && made.profiles.every((each) => askNetworkManager(each) === '');

function judgeRefusal(name: string, problem: string, isTakenByBoth: boolean): Answer {
  if (!isTakenByBoth) return { said: 'both refuse it' };
  return explainListed(REFUSED_ALONE, { name, said: 'only sealift refuses it', fault: problem });
}

/** A fault with a reason is none; others are faults unless the document is listed. */
function explainListed(
  reasons: typeof REFUSED_ALONE,
  { name, said, fault }: { readonly name: string; readonly said: string; readonly fault: string },
): Answer {
  const reason = reasons.find(([pattern]) => pattern.test(fault));
  return reason ? { said: `${said}: ${reason[1]}` } : listed(name, said, fault);
}

/** The answer, without a fault that only the older nmstatectl finds. */
function explainOlder(judge: string, answer: Answer): Answer {
  const { said, fault = '' } = answer;
  const reason = judge.includes(OLDER)
    ? OF_OLDER.find(([pattern]) => fault !== '' && pattern.test(fault))
    : undefined;
  return reason ? { said: `${said}: ${reason[1]}` } : answer;
}

const listed = (name: string, said: string, fault: string): Answer =>
  Object.hasOwn(NETWORK_DIFFERENCES, name) ? { said: `${said}: listed` } : { said, fault };

/** A document has one verdict, whether a map gives the names (customize, serve, build) or not (config-iso). */
function compareCommands(document: string): string | undefined {
  const value = readOrEmpty(document);
  const names = judgeNetwork(value).state.interfaces.map(({ name }) => name);
  const interfaces = [...new Set(names)].map((name, at) => ({
    name,
    macAddress: `52:54:01:00:00:${at.toString(16).padStart(2, '0')}`,
  }));
  const source = 'network.yaml';
  const [mapped, plain] = [judgeNetwork(value, { interfaces, source }), judgeNetwork(value)];
  const [one, other] = [mapped, plain].map(({ problems }) =>
    problems.map((each) => each.problem).filter((each) => !each.startsWith(LONG_NAME)),
  );
  return JSON.stringify(one) === JSON.stringify(other)
    ? undefined
    : `${String(one)} | ${String(other)}`;
}

/** The script that maps names shortens that of a VLAN, so that with a map it may be longer. */
const LONG_NAME = 'a name must have at most';

function readOrEmpty(document: string): unknown {
  try {
    return parse(document);
  } catch {
    return {};
  }
}

async function judgeAll(judge: string, cases: readonly Case[]): Promise<readonly string[]> {
  const tool = await findNetworkTool({ env: { PATH: dirname(judge) }, signal });
  if (!tool) throw new Error('nmstatectl of the judge does not run');
  const table = new Map<string, number>();
  const faults: string[] = [];
  for (const each of cases) {
    const answer = await compare(each, await tool.makeProfiles(each.document, signal));
    const { said, fault } = explainOlder(judge, answer);
    table.set(said, (table.get(said) ?? 0) + 1);
    if (fault !== undefined) faults.push(`${each.name}: ${said}: ${fault}\n${each.document}`);
    const differing = compareCommands(each.document);
    if (differing !== undefined) faults.push(`${each.name}: two verdicts: ${differing}`);
  }
  console.table(Object.fromEntries([...table].toSorted(([, a], [, b]) => b - a)));
  return faults;
}

const SETS = ['upstream', 'edge', 'findings'];

/** The version whose profiles sealift writes, and the one of earlier live systems. */
const JUDGES = ['nmstatectl', OLDER].map(
  (folder) => [folder, findJudge(folder, 'nmstatectl') ?? ''] as const,
);

describe.each(JUDGES)('sealift, %s and NetworkManager', (_folder, judge) => {
  const isMissing = judge === '' || !hasNmcli;

  test.skipIf(isMissing || !existsSync(JUDGED))('agree on the recorded documents', async () => {
    const cases = SETS.flatMap(
      (set) => JSON.parse(readFileSync(`${JUDGED}/${set}.json`, 'utf8')) as readonly Case[],
    );
    expect(await judgeAll(judge, cases)).toEqual([]);
  });

  test.skipIf(isMissing)('agree on random documents', async () => {
    const documents = fc.sample(anyNetwork, { numRuns: runs(1500), seed: 29 });
    const cases = documents.map((document, at) => ({ name: `random ${at}`, document }));
    expect(await judgeAll(judge, cases)).toEqual([]);
  });
});
