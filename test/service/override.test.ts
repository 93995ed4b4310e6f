import { execFileSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { requireTool } from '../support/tools.ts';
import { API, PULL_SECRET, startService, type TestService } from '../support/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.close());

describe.skipIf(!requireTool('openssl'))('a trust bundle', () => {
  it('with a certificate that is not an authority is accepted with a warning', async () => {
    const line =
      'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout /dev/null -subj /CN=leaf -addext basicConstraints=CA:FALSE';
    const additional_trust_bundle = execFileSync('openssl', line.split(' '), {
      encoding: 'utf8',
      stdio: 'pipe',
    });
    const created = await service.call('POST', `${API}/v2/infra-envs`, {
      body: { name: 'edge', pull_secret: PULL_SECRET, additional_trust_bundle },
    });
    expect([created.status, created.headers.get('warning')]).toEqual([
      201,
      expect.stringMatching(/^299 - "additional_trust_bundle: .*CN=leaf.* is not marked as/),
    ]);
  });
});

describe('an Ignition override', () => {
  const create = (file: object) =>
    service.call('POST', `${API}/v2/infra-envs`, {
      body: {
        name: 'edge',
        pull_secret: PULL_SECRET,
        ignition_config_override: JSON.stringify({
          ignition: { version: '3.2.0' },
          storage: { files: [{ path: '/etc/a', ...file }] },
        }),
      },
    });

  it.each([
    [
      'a data URL that is not base64',
      { contents: { source: 'data:;base64,a' } },
      'contents: data URL is not base64',
    ],
    [
      'contents that are not gzip',
      { contents: { source: 'data:,a', compression: 'gzip' } },
      'contents: content is not gzip',
    ],
    [
      'contents with another hash',
      { contents: { source: 'data:,a', verification: { hash: `sha256-${'0'.repeat(64)}` } } },
      'contents: content has another hash than is given for it',
    ],
    ['a relative path', { path: 'etc/a' }, 'path: path "etc/a" is not absolute'],
    ['a mode that is too large', { mode: 10_000 }, 'mode: mode 10000 is not between 0 and 4095'],
    [
      'two owners',
      { user: { id: 1, name: 'a' } },
      'user: owner has both the id 1 and the name "a"',
    ],
  ])('with %s is refused with the place', async (_, file, problem) => {
    const { status, body } = await create(file);
    expect([status, body['reason']]).toEqual([
      400,
      `error parsing ignition: config is not valid, error report: error at $.storage.files.0.${problem}`,
    ]);
  });

  it('with a mode that is decimal by mistake is accepted with a warning', async () => {
    const created = await create({ mode: 644, contents: { source: 'data:,a' } });
    expect([created.status, created.headers.get('warning')]).toEqual([
      201,
      expect.stringMatching(
        /^299 - "ignition_config_override: \$\.storage\.files\.0\.mode: mode 644 /,
      ),
    ]);
  });
});
