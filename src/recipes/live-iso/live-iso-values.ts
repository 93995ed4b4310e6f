import { objectOrEmpty, withoutUndefined } from '../../base/lists.ts';
import { parse } from '../../shape/parse-text.ts';
import { Secret } from '../../base/secret.ts';
import type { CustomValues, HostNetwork } from '../../openshift/agent/values.ts';
import type { LiveIsoRequest } from './live-iso-request.ts';

/** What of the request belongs to a site: the same bytes are on the medium when they are added later. */
export function sealValues(request: LiveIsoRequest): Secret | undefined {
  const values = listValues(request);
  return Object.keys(values).length === 0 ? undefined : new Secret(JSON.stringify(values));
}

function listValues({ config, ignition, hosts, overrides }: LiveIsoRequest): CustomValues {
  const { kernelArguments, embed } = config.build;
  const forAgents = ignition === 'installer' ? readForAgents(hosts, overrides.infraEnv) : {};
  const { sshKey } = config;
  return {
    ...withoutUndefined({
      sshKeys: sshKey === undefined ? undefined : [sshKey],
      pullSecret: embed.pullSecret?.reveal(),
      kargs: kernelArguments.length === 0 ? undefined : { append: kernelArguments },
    }),
    ...forAgents,
  };
}

/** What only the agent-based installer has a place for. */
function readForAgents(hosts: readonly HostNetwork[] = [], infraEnv?: string): CustomValues {
  const { metadata, spec } = infraEnv === undefined ? {} : objectOrEmpty(parse(infraEnv));
  const { sshAuthorizedKey, proxy } = objectOrEmpty(spec);
  return {
    ...(hosts.length > 0 && { hosts }),
    ...(typeof sshAuthorizedKey === 'string' && { sshKeys: [sshAuthorizedKey] }),
    ...(proxy !== undefined && { proxy: objectOrEmpty(proxy) }),
    ...(infraEnv !== undefined && {
      infraEnv: { metadata: objectOrEmpty(metadata), spec: objectOrEmpty(spec) },
    }),
  };
}
