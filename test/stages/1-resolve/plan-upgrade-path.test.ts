import { expect, it } from 'vitest';
import { createRedaction } from '../../../src/base/text/redact.ts';
import { createHttp } from '../../../src/base/http/http.ts';
import { parseReference } from '../../../src/registry/reference.ts';
import { planUpgradePath } from '../../../src/stages/1-resolve/plan-upgrade-path.ts';
import { serveLocally } from '../../support/local-http.ts';
import { createStageContext } from '../../support/stage-context.ts';
import { createTestRetries } from '../../support/test-clock.ts';

const payload = (digit: string): string => `quay.io/ocp/release@sha256:${digit.repeat(64)}`;

it('an upgrade from one major version to the next is planned from the channels of both', async () => {
  const { url, requests, close } = await serveLocally((request, response) => {
    const known = request.url?.includes('channel=stable-4.22')
      ? ['4.22.1', '4.22.9']
      : ['4.22.9', '5.0.1'];
    const nodes = known.map((version, index) => ({ version, payload: payload(String(index)) }));
    response.end(JSON.stringify({ nodes, edges: [[0, 1]] }));
  });
  try {
    const path = await planUpgradePath.run(
      {
        from: '4.22.1',
        release: {
          version: '5.0.1',
          reference: parseReference(payload('5')),
          arch: 'x86_64',
          created: '2026-11-01T00:00:00Z',
          components: [],
          definitions: [],
          imagePolicies: [],
          adminGates: {},
          metadata: { version: '5.0.1', previous: [], metadata: {} },
        },
        channel: 'stable',
        arch: 'x86_64',
        graphUrl: url,
      },
      { http: createHttp({ redaction: createRedaction(), env: {}, retries: createTestRetries() }) },
      createStageContext(),
    );
    expect(path.hops.map(({ version }) => version)).toEqual(['4.22.9', '5.0.1']);
    expect(requests.map((line) => line.replace(/.*channel=(.*)&.*/, '$1')).sort()).toEqual([
      'stable-4.22',
      'stable-5.0',
    ]);
  } finally {
    await close();
  }
});
