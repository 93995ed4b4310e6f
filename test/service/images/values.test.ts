import { expect, it } from 'vitest';
import { Secret } from '../../../src/base/secret.ts';
import { readValues } from '../../../src/service/images/values.ts';

const INFRA_ENV = {
  id: '6ba7b811-9dad-11d1-80b4-00c04fd430c8',
  name: 'edge',
  tenant: 't',
  revision: 1,
  cpu_architecture: 'x86_64',
  user_name: 'u',
  created_at: '',
  updated_at: '',
  pull_secret: new Secret('{"auths":{}}'),
};

it.each([
  [{ ntp_sources: 'a.example,192.0.2.1' }, { exclusiveNtpSources: ['a.example', '192.0.2.1'] }],
  [{ additional_ntp_sources: 'a.example', ntp_sources: '' }, { ntpSources: ['a.example'] }],
])(
  'time servers of an InfraEnv replace those of the ISO, or are added: %j',
  async (given, expected) => {
    const { ntpSources, exclusiveNtpSources } = await readValues(
      { ...INFRA_ENV, ...given },
      { forAgents: true, networkTool: undefined },
    );
    expect({ ntpSources, exclusiveNtpSources }).toEqual(expected);
  },
);
