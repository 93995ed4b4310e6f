import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { createRedaction } from '../../../src/base/text/redact.ts';
import { checkAgentSite } from '../../../src/sites/agent/check.ts';
import {
  agentConfig,
  agentHost,
  agentInstallConfig,
  agentSite,
} from '../../support/agent-sites.ts';
import { TEST_EPOCH } from '../../support/site-inputs.ts';

type Members = Readonly<Record<string, unknown>>;

/** Members that differ from a good single node, and what the code of openshift-install 4.22 said. */
type Case = {
  readonly case: string;
  readonly install: Members;
  readonly agent: Members;
  /** Null if it took the inputs. */
  readonly refused: string | null;
};

const CASES = JSON.parse(
  readFileSync(new URL('installer-refusals.json', import.meta.url), 'utf8'),
) as readonly Case[];

/** Refused here alone, with the reason. */
const STRICTER: Readonly<Record<string, string>> = {
  b48: 'fencing credentials of a host that the cluster has not',
  b15: 'two platforms: it takes one of them without a word',
  b52: 'a pool with another name, which no role has',
  b53: 'a pool with another name, which no role has',
  b58: 'an unknown mode, which the service refuses when the cluster is registered',
  b60: 'a platform that is not composed here',
  b61: 'a host without an address in a machine network, which the service refuses after the boot',
  c07: 'a quotation mark, which ends the value in the env files of the hosts',
  c08: 'a port above 65535',
  c09: 'no host',
  c10: 'no host',
  c14: 'a quotation mark, which ends the value in the env files of the hosts',
  c17: 'an entry twice, which the service refuses when the cluster is registered',
  c29: 'a base domain that the service refuses when the cluster is registered',
  c30: 'a base domain that the service refuses when the cluster is registered',
  c31: 'a base domain that the service refuses when the cluster is registered',
  c56: 'fencing credentials of a host that the cluster has not',
  c61: 'the folder of an unnamed host on the image, which the installer would write twice',
};

/** Taken by both: strange inputs, and good ones beside those that are refused. */
const TAKEN = [
  'b63',
  'c02',
  'c13',
  'c19',
  'c23',
  'c28',
  'c32',
  'c36',
  'c38',
  'c48',
  'c49',
  'c55',
  'c57',
  'c60',
  'c63',
  'c67',
];

/** Other words, with the reason. */
const OTHER_WORDS: Readonly<Record<string, string>> = {
  b03: 'numbers are quoted, and sorted',
  b04: 'numbers are quoted, and sorted',
  b05: 'the words of the service, which name both ways out',
  b06: 'numbers are quoted',
  b12: 'the words of the service, which is stricter',
  b13: 'lists are not written as JSON',
  b16: 'platforms that are composed here',
  b21: 'names the other network',
  b22: 'numbers are quoted',
  b23: 'without the advice to read the documentation of Go structs',
  b26: 'secrets are hidden',
  b27: 'secrets are hidden',
  b44: 'the host is named',
  b56: 'lists are not written as JSON',
  b64: 'secrets are hidden',
  c01: 'secrets are hidden',
  c03: 'secrets are hidden',
  c04: 'secrets are hidden',
  c12: 'secrets are hidden',
  c16: 'secrets are hidden',
  c59: 'the value is not said twice',
  c65: 'without the steps that led to it',
};

function check({ install, agent }: Case): readonly string[] {
  const input = agentSite(
    agentInstallConfig({}, install),
    agentConfig([agentHost(0, 'master')], agent),
  );
  const options = { epoch: TEST_EPOCH, redaction: createRedaction() };
  return checkAgentSite(input, options).problems.map(({ problem }) => problem);
}

describe('what openshift-install refuses', () => {
  it.each(CASES.map((each) => [each.case, each] as const))('is refused: %s', (name, each) => {
    const problems = check(each);
    expect(problems.length > 0, problems.join()).toBe(!TAKEN.includes(name));
    expect(each.refused === null).toBe(TAKEN.includes(name) || STRICTER[name] !== undefined);
    if (each.refused === null) return;
    const { refused } = each;
    const hasSameWords = problems.some((problem) => refused.includes(problem));
    expect(hasSameWords, `${refused}\n${problems.join('\n')}`).toBe(
      OTHER_WORDS[name] === undefined,
    );
  });
});
