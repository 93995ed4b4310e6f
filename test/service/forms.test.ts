import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { API, PULL_SECRET, startService, type TestService } from '../support/service.ts';

describe('a value of an InfraEnv', () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.close());
  const create = (more: object) =>
    service.call('POST', `${API}/v2/infra-envs`, {
      body: { name: 'edge', pull_secret: PULL_SECRET, ...more },
    });

  it.each([
    ['a,,b', 'an entry is empty'],
    ['a,', 'an entry is empty'],
    ['0.0.0.0', '0.0.0.0'],
    ['ntp.example.com,224.0.0.1', '224.0.0.1'],
    ['10.1.0.', '10.1.0.'],
  ])('is refused if the time servers are %s', async (additional_ntp_sources, wrong) => {
    const { status, body } = await create({ additional_ntp_sources });
    expect([status, body['reason']]).toEqual([400, `Invalid NTP source: ${wrong}`]);
  });

  it('may have blanks between time servers', async () => {
    expect((await create({ ntp_sources: 'a.example.com, 192.0.2.1' })).status).toBe(201);
  });

  it.each([['fe80::1%eth0'], ['0.0.0.0'], ['ff02::1'], ['127.0.0.1']])(
    'is refused if the rendezvous IP is %s, which no host has',
    async (rendezvous_ip) => {
      const { status, body } = await create({ image_type: 'disconnected-iso', rendezvous_ip });
      expect([status, body['reason']]).toEqual([
        400,
        `Invalid rendezvous IP: ${rendezvous_ip} (must be a valid IPv4 or IPv6 address)`,
      ]);
    },
  );

  it("is refused if the pull secret has no entry, in assisted-service's words", async () => {
    const { status, body } = await create({ pull_secret: '{"auths":{}}' });
    expect([status, body['reason']]).toEqual([
      400,
      "pull secret for new infraEnv is invalid: pull secret must contain 'auths' JSON-object field",
    ]);
  });

  it.each([
    ['amd64', 'x86_64'],
    ['arm64', 'aarch64'],
    ['s390x', 's390x'],
  ])('has the name of RPM for the architecture %s', async (cpu_architecture, name) => {
    expect((await create({ cpu_architecture })).body['cpu_architecture']).toBe(name);
  });

  it('is named in a warning with a guess, and in the log, if no member has its name', async () => {
    const { status, headers } = await create({
      ssh_authorised_key: 'hunter2secret',
      proxy: { https_proxy: null, colour: 'red' },
    });
    const told = [
      'ssh_authorised_key is not known and is ignored; did you mean "ssh_authorized_key"?',
      'proxy.colour is not known and is ignored',
    ];
    expect([status, headers.get('warning')]).toEqual([
      201,
      told.map((text) => `299 - "${text.replaceAll('"', String.raw`\"`)}"`).join(', '),
    ]);
    const logged = told.map((text) => `POST ${API}/v2/infra-envs: ${text}`);
    expect(service.warnings.slice(-2)).toEqual(logged);
  });
});
