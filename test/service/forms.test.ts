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
    ['0.0.0.0', '"0.0.0.0" is the address of no host'],
    ['ntp.example.com,224.0.0.1', '"224.0.0.1" is the address of no host'],
    ['10.1.0.', '"10.1.0." is neither a name nor an address'],
  ])('is refused if the time servers are %s', async (additional_ntp_sources, wrong) => {
    const { status, body } = await create({ additional_ntp_sources });
    expect([status, body['reason']]).toEqual([
      400,
      `Invalid NTP source: ${additional_ntp_sources}: ${wrong}`,
    ]);
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

  it.each([
    [
      { ssh_authorised_key: 'hunter2secret' },
      '"ssh_authorised_key"; did you mean "ssh_authorized_key"?',
    ],
    [{ proxy: { https_proxy: null, colour: 'hunter2secret' } }, '"colour"'],
    [{ constructor: 'hunter2secret' }, '"constructor"'],
  ])('is refused with a guess if no member has its name: %j', async (more, told) => {
    const { status, body } = await create(more);
    expect([status, body['reason']]).toEqual([
      400,
      `parsing infraenvCreateParams body from "" failed, because json: unknown field ${told}`,
    ]);
  });

  it.each([
    [
      'proxy',
      'http://p',
      'string into Go struct field InfraEnvCreateParams.proxy of type models.Proxy',
    ],
    ['name', 5, 'number into Go struct field InfraEnvCreateParams.name of type string'],
    [
      'network_discovery_delay_seconds',
      1.5,
      'number 1.5 into Go struct field InfraEnvCreateParams.network_discovery_delay_seconds of type int64',
    ],
    [
      'static_network_config',
      [{ network_yaml: true }],
      'bool into Go struct field InfraEnvCreateParams.static_network_config.network_yaml of type string',
    ],
  ])('is refused if %s has another type', async (name, value, told) => {
    const { status, body } = await create({ [name]: value });
    expect([status, body['reason']]).toEqual([
      400,
      `parsing infraenvCreateParams body from "" failed, because json: cannot unmarshal ${told}`,
    ]);
  });

  it('is read as Go reads it: names in any case, null is absent, and the last of two counts', async () => {
    const raw =
      `{"NAME":"a","name":"b","Pull_Secret":${JSON.stringify(PULL_SECRET)},"proxy":null,` +
      '"static_network_config":[null],"kernel_arguments":null,"Ssh_Authorized_Key":null}';
    const { status, body } = await service.call('POST', `${API}/v2/infra-envs`, { raw });
    expect(status).toBe(201);
    expect(body).toMatchObject({ name: 'b', static_network_config: '[]' });
    expect(body).not.toHaveProperty('proxy');
  });
});
