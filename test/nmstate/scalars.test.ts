import { describe, expect, it } from 'vitest';
import { ConfigError } from '../../src/base/errors.ts';
import {
  formatNetworkConfig,
  hostOfFile,
  planNetwork,
  profilesOf,
} from '../../src/nmstate/index.ts';
import { parseResources, readHostNetworks } from '../../src/openshift/agent/resources.ts';
import { checkNetworks } from '../../src/service/infra-envs/networks.ts';
import { ApiFailure } from '../../src/service/openapi.ts';
import { IMAGE_BASED_CONFIG, readSiteDocument } from '../../src/sites/documents.ts';
import { checkNetworkConfig } from '../../src/sites/rules/network-config.ts';
import { resultOf, SCALAR_PLACES, SCALARS } from '../support/network-scalars.ts';

const { signal } = new AbortController();
const MAC = '52:54:00:00:00:01';

/** `document` as the value of a member, two levels below the left margin. */
const indent = (document: string): string => document.replaceAll(/^/gm, '    ').trimEnd();

type Door = (place: string, document: string) => Promise<string>;

const ofProfiles: Door = async (place, document) => {
  const host = hostOfFile(document, 'net.yaml');
  const { profiles, verdict } = await planNetwork(host, { signal });
  return verdict.problems.length > 0 ? 'refused' : resultOf(place, profiles);
};

/** The doors through which nmstate's own reader sees a document first. */
const PLAIN: Readonly<Record<string, Door>> = {
  'customize --nmstate': ofProfiles,
  async 'static_network_config'(place, document) {
    const host = {
      network_yaml: document,
      mac_interface_map: ['eth0', 'bond0'].map((name, at) => ({
        logical_nic_name: name,
        mac_address: `52:54:00:00:00:0${at}`,
      })),
    };
    await checkNetworks([host]);
    return resultOf(place, profilesOf({ networkConfig: document, interfaces: [] }));
  },
};

/** The doors at which Go reads it first. */
const OF_GO: Readonly<Record<string, Door>> = {
  'an NMStateConfig': async (place, document) => {
    const text =
      'apiVersion: agent-install.openshift.io/v1beta1\nkind: NMStateConfig\nmetadata: {name: a}\n' +
      `spec:\n  interfaces: [{name: eth0, macAddress: '${MAC}'}]\n  config:\n${indent(document)}\n`;
    const [host] = readHostNetworks(parseResources(text, 'a.yaml'));
    return ofProfiles(place, host?.networkConfig ?? '');
  },
  'a site': (place, document) => {
    const text = `networkConfig:\n${indent(document)}\n`;
    const file = { path: 'image-based-config.yaml', shownAs: 'a', bytes: Buffer.from(text) };
    const { report, value, problems } = readSiteDocument(
      file as unknown as Parameters<typeof readSiteDocument>[0],
      IMAGE_BASED_CONFIG,
    );
    const { networkConfig } = value;
    const found = [...problems, ...checkNetworkConfig(report, networkConfig)];
    if (found.length > 0) return Promise.resolve('refused');
    return ofProfiles(place, formatNetworkConfig(networkConfig ?? null));
  },
};

async function ask(door: Door, place: string, scalar: string): Promise<string> {
  try {
    return await door(place, SCALAR_PLACES[place]?.document(scalar) ?? '');
  } catch (error) {
    if (error instanceof ConfigError || error instanceof ApiFailure) return 'refused';
    throw error;
  }
}

describe.each(Object.entries({ ...PLAIN, ...OF_GO }))('a scalar in %s', (name, door) => {
  it.each(SCALARS)('means what its first reader says: %s: %s', async (...row) => {
    const [place, scalar, plain, go] = row;
    expect(await ask(door, place, scalar)).toBe(Object.hasOwn(PLAIN, name) ? plain : go);
  });
});
