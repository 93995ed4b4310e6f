import { createRedaction } from '../../src/base/text/redact.ts';
import { checkSite, type SiteCheck } from '../../src/sites/check.ts';
import type { ImageBasedSite, SiteFile, SiteInput } from '../../src/sites/site.ts';

/** Sections of a file by their keys, in the order in which they are written. */
type Sections = Readonly<Record<string, string>>;

const INSTALL: Sections = {
  apiVersion: 'apiVersion: v1',
  metadata: 'metadata: {name: alpha}',
  baseDomain: 'baseDomain: edge.example.com',
  controlPlane: 'controlPlane: {name: master, replicas: 1}',
  compute: 'compute: [{name: worker, replicas: 0}]',
  networking: 'networking: {machineNetwork: [{cidr: 192.0.2.0/24}]}',
  platform: 'platform: {none: {}}',
  pullSecret: `pullSecret: '{"auths":{"quay.io":{"auth":"dXNlcjpwYXNz"}}}'`,
};

const IMAGE_BASED: Sections = {
  hostname: 'hostname: alpha-0',
  additionalNTPSources: 'additionalNTPSources: [ntp.example.com]',
};

/** In the order of the good file; a section that is new comes last, an empty one is left out. */
const write = (good: Sections, changed: Sections): string =>
  Object.values({ ...good, ...changed })
    .filter((section) => section !== '')
    .map((section) => `${section}\n`)
    .join('');

/** An install-config.yaml whose only lines are 1 apiVersion to 8 pullSecret, but for what is changed. */
export const writeInstallConfig = (changed: Sections = {}): string => write(INSTALL, changed);

/** An image-based-config.yaml: hostname, time servers, and what is changed. */
export const writeImageBasedConfig = (changed: Sections = {}): string =>
  write(IMAGE_BASED, changed);

/** A site out of texts by path; the two configuration files are good ones unless they are given. */
export function createSiteInput(
  files: Readonly<Record<string, string | Uint8Array>> = {},
  name = 'alpha',
): SiteInput {
  const all = {
    'install-config.yaml': writeInstallConfig(),
    'image-based-config.yaml': writeImageBasedConfig(),
    ...files,
  };
  return {
    name,
    files: Object.entries(all).map(([path, text]): SiteFile => ({
      path,
      bytes: typeof text === 'string' ? Buffer.from(text) : text,
      shownAs: `${name}/${path}`,
    })),
  };
}

/** 2027-01-01. */
export const TEST_EPOCH = 1_798_761_600;

export const checkInstall = (changed: Sections): SiteCheck<ImageBasedSite> =>
  checkSite(createSiteInput({ 'install-config.yaml': writeInstallConfig(changed) }), {
    epoch: TEST_EPOCH,
    redaction: createRedaction(),
  });

export const checkImageBased = (changed: Sections): SiteCheck<ImageBasedSite> =>
  checkSite(createSiteInput({ 'image-based-config.yaml': writeImageBasedConfig(changed) }), {
    epoch: TEST_EPOCH,
    redaction: createRedaction(),
  });

/** `line:column path: problem` of each. */
export const tell = (problems: SiteCheck<ImageBasedSite>['problems']): readonly string[] =>
  problems.map(({ line, column, path, problem }) => `${line}:${column} ${path}: ${problem}`);

/** The network configuration of an image-based-config.yaml, from its third line on. */
export const network = (lines: readonly string[]): Readonly<Record<string, string>> => ({
  networkConfig: ['networkConfig:', ...lines.map((line) => `  ${line}`)].join('\n'),
});

/** An interface with an address, in lines 4 to 7, and what else it has. */
export const eth0 = (...more: readonly string[]): readonly string[] => [
  'interfaces:',
  '- name: eth0',
  '  type: ethernet',
  '  ipv4: {enabled: true, address: [{ip: 192.0.2.10, prefix-length: 24}]}',
  ...more,
];
