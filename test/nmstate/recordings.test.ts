import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type Keyfile, normaliseKeyfile } from '../../src/nmstate/keyfile.ts';
import { planNetwork } from '../../src/nmstate/plan.ts';
import { NETWORK_DIFFERENCES } from '../support/network-differences.ts';

/** What nmstatectl 2.2.62 and NetworkManager 1.42.4 said of documents: ../shared/data/judged/nmstate. */
const JUDGED = new URL('../../../shared/data/judged/nmstate/', import.meta.url);

type Recorded = {
  readonly 'name': string;
  readonly 'document': string;
  readonly 'nmstate_2.2.62': {
    readonly profiles?: readonly (readonly [name: string, content: string, verdict: string])[];
    readonly refused?: string;
  };
};

const read = (set: string): readonly Recorded[] =>
  JSON.parse(readFileSync(new URL(`${set}.json`, JUDGED), 'utf8')) as readonly Recorded[];

/** The bytes of profiles, as the agent-based installer writes them, by name. */
const listFiles = (profiles: readonly Keyfile[]): readonly string[] =>
  profiles.map(({ name, content }) => `${name}\n${content}`).toSorted();

const { signal } = new AbortController();

/** The fault of our answer; undefined if it is nmstate's, and NetworkManager takes the profiles. */
async function compare({ document, ...recorded }: Recorded): Promise<string | undefined> {
  const { profiles: theirs } = recorded['nmstate_2.2.62'];
  const { profiles, verdict } = await planNetwork(
    { networkConfig: document, interfaces: [] },
    { signal },
  );
  const isTaken = theirs?.every(([, , said]) => said === 'taken') === true && theirs.length > 0;
  if (verdict.problems.length > 0) {
    const isHandedOn = verdict.untranslated.length > 0 && verdict.problems[0]?.hint !== undefined;
    return isTaken && !isHandedOn ? `refused: ${verdict.problems[0]?.problem ?? ''}` : undefined;
  }
  if (!isTaken) return 'accepted, although nmstate or NetworkManager refuses it';
  const ours = listFiles(profiles);
  const expected = listFiles(theirs.map(([name, content]) => normaliseKeyfile({ name, content })));
  return JSON.stringify(ours) === JSON.stringify(expected) ? undefined : 'other profiles';
}

describe.skipIf(!existsSync(JUDGED))('recorded documents of nmstate', () => {
  const met = new Set<string>();
  it.each(['upstream', 'edge', 'findings'])(
    'of the set %s get the verdict and the profiles of nmstatectl and NetworkManager',
    async (set) => {
      const wrong: string[] = [];
      for (const recorded of read(set)) {
        const fault = await compare(recorded);
        if (fault === undefined) continue;
        met.add(recorded.name);
        if (!Object.hasOwn(NETWORK_DIFFERENCES, recorded.name)) {
          wrong.push(`${recorded.name}: ${fault}`);
        }
      }
      expect(wrong).toEqual([]);
    },
  );

  it('differ from them in no other document than those with a reason', () => {
    expect(Object.keys(NETWORK_DIFFERENCES).filter((name) => !met.has(name))).toEqual([]);
  });
});
