import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { createRedaction } from '../../../src/base/text/redact.ts';
import { renderClusterManifests } from '../../../src/openshift/agent/cluster-manifests.ts';
import { renderHostConfigs } from '../../../src/openshift/agent/host-configs.ts';
import { INFRA_ENV, parseLiveManifest } from '../../../src/openshift/agent/live-manifest.ts';
import { checkAnySite } from '../../../src/sites/check-any.ts';
import type { SiteCheck } from '../../../src/sites/check.ts';
import { type ExportedSite, exportSite } from '../../../src/sites/export/export.ts';
import type { FindController } from '../../../src/sites/export/host-table.ts';
import { convertResources } from '../../../src/sites/resources/convert.ts';
import type { Site, SiteInput } from '../../../src/sites/site.ts';
import { AGENT_LIVE_TEXTS } from '../../support/agent-medium.ts';
import { TEST_EPOCH } from '../../support/site-inputs.ts';

type Case = {
  readonly case: string;
  readonly inputs: Readonly<Record<string, string>>;
};

/** The inputs that the manifests of the installer were recorded for. */
const CASES = JSON.parse(
  readFileSync(new URL('../agent/installer-manifests.json', import.meta.url), 'utf8'),
) as readonly Case[];

/** Inputs that no ClusterInstance is made of, and the reason that a person is told. */
const REFUSED: Readonly<Record<string, RegExp>> = {
  '02-sno-nohosts': /^controlPlane: the cluster has 1 hosts as master, and 0 of them are named/,
  '04-sno-norole-noname': /^hosts\[0\]: a node of a ClusterInstance has a name/,
  '30-calico': /^networking.networkType: .* not Calico/,
  '31-defaults': /^compute: the cluster has 3 hosts as worker, and 0 of them are named/,
  '42-some-dhcp': /^controlPlane: the cluster has 3 hosts as master, and 2 of them are named/,
  'c55': /^compute: the cluster has 3 hosts as worker, and 0 of them are named/,
  'c57': /^compute: the cluster has 3 hosts as worker, and 0 of them are named/,
  'c60': /^compute: the cluster has 3 hosts as worker, and 0 of them are named/,
};

/** Controllers in an agent-config.yaml are those of a hub, which writes its own. */
const CONTROLLERS = [
  /^agent-cluster-install.yaml$/,
  /^hosts\[0\]: the controller of the host is known/,
] as const;

/** Inputs of which something is lost: the files that differ, and the warning. */
const LOST: Readonly<Record<string, readonly [files: RegExp, warning: RegExp]>> = {
  '05-sno-external': [/\/role$/, /^hosts\[0\]: the host has no role: it is written as master/],
  '12-5masters': [/\/role$/, /^hosts\[5\]: the host has no role: it is written as worker/],
  '32-bmhosts': CONTROLLERS,
  '33-bmhosts-net': CONTROLLERS,
  'c32': CONTROLLERS,
  'c36': CONTROLLERS,
  'c38': CONTROLLERS,
  'c48': CONTROLLERS,
  'c49': CONTROLLERS,
  'c63': CONTROLLERS,
  'c67': CONTROLLERS,
};

const toInput = (files: Readonly<Record<string, string>>): SiteInput => ({
  name: 'site1',
  files: Object.entries(files).map(([path, text]) => ({
    path,
    bytes: Buffer.from(text),
    shownAs: path,
  })),
});

const read = (input: SiteInput): SiteCheck =>
  checkAnySite(input, { epoch: TEST_EPOCH, redaction: createRedaction() });

const RELEASE = {
  imageSet: 'set',
  infraEnv: parseLiveManifest(INFRA_ENV, AGENT_LIVE_TEXTS[INFRA_ENV] ?? ''),
};

/** The texts by which a cluster is installed, by their names. */
function render({ site, problems }: SiteCheck): ReadonlyMap<string, string> {
  if (site?.kind !== 'agent') throw new Error(JSON.stringify(problems));
  const { cluster } = site;
  const all = [...renderClusterManifests(cluster, RELEASE), ...renderHostConfigs(cluster)];
  return new Map(all.map(({ name, text }) => [name, text]));
}

/** A controller for every host. */
const find: FindController = (_site, host) => ({
  controller: {
    address: `redfish://${host}`,
    username: 'root',
    password: 'word',
    disableCertificateVerification: true,
  },
});

const exportInstance = (site: Site, { files }: SiteInput): ExportedSite =>
  exportSite(
    { site, files, find },
    { form: 'clusterinstance', imageSet: 'set', templateNamespace: 'templates' },
  );

const readAgain = ({ files }: ExportedSite): SiteCheck => {
  const texts = Object.fromEntries(files.map(({ name, text }) => [name, text]));
  return read(convertResources(toInput(texts), undefined));
};

describe('a ClusterInstance that is exported and read again', () => {
  const good = CASES.map(({ case: name, inputs }) => {
    const input = toInput({ 'agent-config.yaml': 'apiVersion: v1beta1\n', ...inputs });
    return { name, input, checked: read(input) };
  }).filter(({ checked }) => checked.site !== undefined);

  it('is tried with every recorded input that is a valid site', () => {
    expect(good.length).toBeGreaterThan(40);
  });

  it.each(good.map((each) => [each.name, each] as const))(
    'gives the same manifests and host files, or tells why not: %s',
    (name, { input, checked }) => {
      if (!checked.site) throw new Error('no site');
      const exported = exportInstance(checked.site, input);
      const { findings } = exported;
      const told = findings.map(({ path = '', problem }) => `${path}: ${problem}`);
      const isRefused = findings.some(({ severity }) => severity === 'error');
      expect(isRefused).toBe(REFUSED[name] !== undefined);
      if (REFUSED[name]) {
        expect(told).toContainEqual(expect.stringMatching(REFUSED[name]));
        return;
      }
      const [before, after] = [render(checked), render(readAgain(exported))];
      const names = new Set([...before.keys(), ...after.keys()]);
      const different = [...names].filter((file) => before.get(file) !== after.get(file));
      const [files, warning] = LOST[name] ?? [/^$/, undefined];
      expect(different.filter((file) => !files.test(file))).toEqual([]);
      expect(different.length > 0).toBe(warning !== undefined);
      if (warning) expect(told).toContainEqual(expect.stringMatching(warning));
    },
  );
});
