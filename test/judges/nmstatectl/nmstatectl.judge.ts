import { dirname } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ConfigError } from '../../../src/base/errors.ts';
import { type Keyfile, normaliseKeyfile } from '../../../src/nmstate/keyfile.ts';
import { findNetworkTool } from '../../../src/nmstate/tool.ts';
import { renderKeyfiles } from '../../support/render-profiles.ts';
import { TAKEN } from '../../support/network-states.ts';
import { createComparer, findJudge } from '../find-judge.ts';
import { DIFFERENCES } from './differences.ts';

const judge = findJudge('nmstatectl');
const { requireAgreement, listUnused } = createComparer(DIFFERENCES);

/** Profiles by name, with the entries of each section in any order. */
const sortProfiles = (
  profiles: readonly Keyfile[],
): readonly (readonly [string, readonly string[]])[] =>
  profiles
    .map(normaliseKeyfile)
    .map(({ name, content }) => [name, listEntries(content)] as const)
    .toSorted(([a], [b]) => (a < b ? -1 : 1));

/** `section.key=value` */
function listEntries(content: string): readonly string[] {
  let section = '';
  return content
    .split('\n')
    .flatMap((line) => {
      const [, header] = /^\[(.*)\]$/.exec(line) ?? [];
      if (header !== undefined) section = header;
      return header !== undefined || line === '' ? [] : [`${section}.${line}`];
    })
    .toSorted();
}

describe.skipIf(judge === undefined)('nmstatectl and sealift', () => {
  test('write the same profiles for the same networks, or refuse them both', async () => {
    const { signal } = new AbortController();
    const nmstate = await findNetworkTool({ env: { PATH: dirname(judge ?? '') }, signal });
    if (!nmstate) throw new Error('nmstatectl of the judge does not run');
    for (const [document] of TAKEN) {
      const made = await nmstate.makeProfiles(document, signal);
      const theirs = 'problem' in made ? undefined : sortProfiles(made.profiles);
      const ours = await answer(() => Promise.resolve(renderKeyfiles(document)));
      requireAgreement(document, ours, theirs);
    }
  });

  test('have no listed difference that no comparison meets', () => {
    expect(listUnused()).toEqual([]);
  });
});

/** Sorted profiles, or undefined where the document is refused. */
async function answer(make: () => Promise<readonly Keyfile[]>): Promise<unknown> {
  try {
    return sortProfiles(await make());
  } catch (error) {
    if (error instanceof ConfigError) return undefined;
    throw error;
  }
}
