import { describe, expect, it } from 'vitest';
import { createRedaction } from '../../../src/base/text/redact.ts';
import { configurePullSecret } from '../../../src/openshift/agent/agent-manifests.ts';
import { planImageMembers } from '../../../src/openshift/agent/image-members.ts';
import { configureInstall } from '../../../src/openshift/agent/install-overrides.ts';
import { INFRA_ENV } from '../../../src/openshift/agent/live-manifest.ts';
import { describeLiveSystem } from '../../../src/openshift/agent/live-system.ts';
import { RENDEZVOUS_TEMPLATE } from '../../../src/openshift/agent/rendezvous.ts';
import { checkAgentSite } from '../../../src/sites/agent/check.ts';
import { makeAgentAuth } from '../../../src/sites/identity/agent-auth.ts';
import { AGENT_LIVE_TEXTS, agentLiveIgnition } from '../../support/agent-medium.ts';
import {
  agentConfig,
  agentHost,
  agentInstallConfig,
  agentSite,
} from '../../support/agent-sites.ts';
import { TEST_EPOCH } from '../../support/site-inputs.ts';

const UUID = '22222222-2222-4222-8222-222222222222';

const SIGNERS = [
  'admin-kubeconfig-signer',
  'kube-apiserver-lb-signer',
  'kube-apiserver-localhost-signer',
  'kube-apiserver-service-network-signer',
];

/** YAML whose aliases stand for 10^9 values. */
const BOMB = Array.from({ length: 10 }, (_, index) => {
  const before = index === 0 ? 'x' : `*a${index - 1}`;
  return `a${index}: &a${index} [${Array.from({ length: 10 }, () => before).join(', ')}]`;
}).join('\n');

function plan(texts: Readonly<Record<string, string>>): void {
  const input = agentSite(agentInstallConfig(), agentConfig([agentHost(0, 'master')]));
  const { site } = checkAgentSite(input, { epoch: TEST_EPOCH, redaction: createRedaction() });
  if (!site) throw new Error('no site');
  planImageMembers(site.cluster, {
    system: describeLiveSystem([agentLiveIgnition({ ...AGENT_LIVE_TEXTS, ...texts })]),
    networks: [],
    secrets: {
      infraEnvId: UUID,
      passwordHash: '$2a$',
      tls: SIGNERS.flatMap((name) => [
        { name: `${name}.key`, text: 'k' },
        { name: `${name}.crt`, text: 'c' },
      ]),
      auth: makeAgentAuth(),
    },
  });
}

describe('a medium of another release', () => {
  it.each([
    ['an InfraEnv that is not YAML', INFRA_ENV, 'a: [', 'infraenv.yaml is not YAML'],
    ['an InfraEnv of too many values', INFRA_ENV, BOMB, 'infraenv.yaml is not YAML'],
    [
      'a template of an unknown form',
      RENDEZVOUS_TEMPLATE,
      'NODE_ZERO_IP={{ .Address }}\n',
      'has a template that this version does not know: NODE_ZERO_IP={{ .Address }}',
    ],
  ])('gets no image with %s', (_, ...[path, text, problem]) => {
    expect(() => {
      plan({});
    }).not.toThrow();
    expect(() => {
      plan({ [path]: text });
    }).toThrow(
      expect.objectContaining({
        code: 'config-image.medium',
        message: expect.stringContaining(problem) as string,
      }),
    );
  });

  it.each([
    ['pull secret', () => configurePullSecret(BOMB, {})],
    ['install', () => configureInstall('a: [', '{}')],
  ])('has its manifests refused by name if nothing can read them: %s', (_, configure) => {
    expect(configure).toThrow(expect.objectContaining({ code: 'medium.manifest' }));
  });
});
