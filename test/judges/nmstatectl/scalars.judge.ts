import { dirname } from 'node:path';
import { describe, expect, test } from 'vitest';
import { formatNetworkConfig } from '../../../src/nmstate/index.ts';
import { findNetworkTool } from '../../../src/nmstate/tool.ts';
import { readYaml } from '../../../src/shape/document.ts';
import { FREE } from '../../../src/shape/shape.ts';
import { resultOf, SCALAR_PLACES, SCALARS } from '../../support/network-scalars.ts';
import { findJudge } from '../find-judge.ts';

const judge = findJudge('nmstatectl');
const { signal } = new AbortController();

/** nmstatectl copies the MAC addresses that it is given, and NetworkManager reads them. */
const COPIED = 'mac';

/** Go's reading in the form in which it goes to a node. */
const throughGo = (text: string): string =>
  formatNetworkConfig(readYaml({ text, file: '', publicKeys: new Set() }, FREE).value);

describe.skipIf(judge === undefined)('nmstatectl', () => {
  test.each(SCALARS)('reads a scalar as the table says: %s: %s', async (...row) => {
    const [place, scalar, plain, go] = row;
    const nmstate = await findNetworkTool({ env: { PATH: dirname(judge ?? '') }, signal });
    if (!nmstate) throw new Error('nmstatectl of the judge does not run');
    const text = SCALAR_PLACES[place]?.document(scalar) ?? '';
    const expected = [
      [text, plain],
      [throughGo(text), go],
    ] as const;
    for (const [document, result] of expected) {
      const made = await nmstate.makeProfiles(document, signal);
      const theirs = 'problem' in made ? 'refused' : resultOf(place, made.profiles);
      if (place === COPIED && result !== theirs) {
        expect(formatNetworkConfig({ 'mac-address': theirs })).toContain(result);
      } else expect(theirs).toBe(result);
    }
  });
});
