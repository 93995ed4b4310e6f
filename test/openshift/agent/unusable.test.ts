import { expect, it } from 'vitest';
import { readOnlyResource } from '../../../src/openshift/agent/resources.ts';
import { requireUsable } from '../../../src/openshift/agent/unusable.ts';
import { TEST_SSH_KEY } from '../../support/installation-iso.ts';

const judge = (spec: object): void => {
  const text = JSON.stringify({ kind: 'InfraEnv', metadata: { name: 'a' }, spec });
  requireUsable(readOnlyResource(text, 'infraenv.yaml', 'InfraEnv'));
};

it.each([
  [{ sshAuthorizedKey: TEST_SSH_KEY.slice(0, 50) }, /spec\.sshAuthorizedKey is cut short/],
  [
    { additionalNTPSources: ['a.example', '10.1.0.'] },
    /additionalNTPSources "10\.1\.0\." is neither/,
  ],
  [{ ntpSources: ['ntp://a.example'] }, /ntpSources "ntp:/],
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
