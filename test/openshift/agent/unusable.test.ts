import { expect, it } from 'vitest';
import { readOnlyResource } from '../../../src/openshift/agent/resources.ts';
import { requireUsable } from '../../../src/openshift/agent/unusable.ts';
import { TEST_SSH_KEY } from '../../support/installation-iso.ts';

const judge = (spec: object): void => {
  const text = JSON.stringify({ kind: 'InfraEnv', metadata: { name: 'a' }, spec });
  requireUsable(readOnlyResource(text, 'infraenv.yaml', 'InfraEnv'));
};

it.each([
  [
    { sshAuthorizedKey: TEST_SSH_KEY.slice(0, 50) },
    /^infraenv\.yaml:1: spec\.sshAuthorizedKey of the InfraEnv is cut short/,
  ],
  [
    { additionalNTPSources: ['a.example', '10.1.0.'] },
    /spec\.additionalNTPSources\[1\] of the InfraEnv: "10\.1\.0\." is neither/,
  ],
  [{ ntpSources: ['ntp://a.example'] }, /spec\.ntpSources\[0\] of the InfraEnv: "ntp:/],
  [
    { proxy: { httpProxy: 'http://p:99999' } },
    /spec\.proxy\.httpProxy .* is not an http or https URL/,
  ],
  [{ additionalTrustBundle: '-' }, /spec\.additionalTrustBundle .*has no block of PEM/],
  [{ proxy: { httpProxy: 'http://p:1', noProxy: '*.example.com' } }, /spec\.proxy\.noProxy/],
])('an InfraEnv of a build that no host can use is refused: %j', (spec, why) => {
  expect(() => {
    judge(spec);
  }).toThrow(why);
});

it('an InfraEnv of a build with comment lines in its keys, a name and an exception is taken', () => {
  judge({
    sshAuthorizedKey: `# ours\n${TEST_SSH_KEY}`,
    ntpSources: ['a.example'],
    proxy: { noProxy: '.example.com' },
  });
});
