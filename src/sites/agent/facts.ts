import { formatAddress, parseAddress } from '../../base/ip-address.ts';
import { createWriter, listNetworkFacts, type SiteFact } from '../facts.ts';
import { resolveNetworks } from '../rules/networks.ts';
import type { AgentConfigDocument, AgentInstallDocument } from './documents.ts';
import { listVips } from './vips.ts';

/** The facts of a cluster that no other site may share. */
export function listAgentFacts(
  install: Pick<AgentInstallDocument, 'value' | 'file' | 'fileOf' | 'lineOf'>,
  agent: Pick<AgentConfigDocument, 'value' | 'file' | 'fileOf' | 'lineOf'>,
): readonly SiteFact[] {
  const { metadata, baseDomain = '', networking, platform } = install.value;
  const domain = baseDomain.replace(/\.$/, '');
  const { name = '' } = metadata ?? {};
  const ofInstall = createWriter(install);
  const ofAgent = createWriter(agent);
  const machine = resolveNetworks(networking).machine.flatMap(({ cidr }) => (cidr ? [cidr] : []));
  const { api, ingress } = listVips(platform?.baremetal ?? {});
  const list = (path: string, texts: readonly string[]): readonly SiteFact[] =>
    texts.flatMap((text) => {
      const address = parseAddress(text);
      return address ? ofInstall('address', formatAddress(address), path) : [];
    });
  return [
    ...ofInstall('cluster', name === '' ? '' : `${name}.${domain}`, 'metadata.name'),
    ...list('platform.baremetal.apiVIPs', api),
    ...list('platform.baremetal.ingressVIPs', ingress),
    ...(agent.value.hosts ?? []).flatMap((host = {}, index) => [
      ...ofAgent('hostname', host.hostname ?? '', `hosts[${index}].hostname`),
      ...(host.interfaces ?? []).flatMap(({ macAddress = '' } = {}, at) =>
        ofAgent('mac', macAddress, `hosts[${index}].interfaces[${at}].macAddress`),
      ),
      ...listNetworkFacts(
        ofAgent,
        { path: `hosts[${index}].networkConfig`, value: host.networkConfig },
        machine,
      ),
    ]),
  ];
}
