import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { createRedaction } from '../../../src/base/text/redact.ts';
import {
  type NamedText,
  renderClusterManifests,
} from '../../../src/openshift/agent/cluster-manifests.ts';
import { renderHostConfigs } from '../../../src/openshift/agent/host-configs.ts';
import { INFRA_ENV, parseLiveManifest } from '../../../src/openshift/agent/live-manifest.ts';
import { checkAgentSite } from '../../../src/sites/agent/check.ts';
import { checkAnySite } from '../../../src/sites/check-any.ts';
import { convertResources } from '../../../src/sites/resources/convert.ts';
import type { Site, SiteInput } from '../../../src/sites/site.ts';
import { AGENT_LIVE_TEXTS } from '../../support/agent-medium.ts';
import { TEST_EPOCH } from '../../support/site-inputs.ts';

/** Inputs of which openshift-install 4.22 made manifests; ours are the same, as another test proves. */
type Case = {
  readonly case: string;
  readonly inputs: Readonly<Record<string, string>>;
  readonly refused?: string;
};

const CASES = (
  JSON.parse(
    readFileSync(new URL('../agent/installer-manifests.json', import.meta.url), 'utf8'),
  ) as readonly Case[]
).filter(({ refused }) => refused === undefined);

const RELEASE = {
  imageSet: 'openshift-was not built correctly',
  infraEnv: parseLiveManifest(INFRA_ENV, AGENT_LIVE_TEXTS[INFRA_ENV] ?? ''),
};

const OPTIONS = { epoch: TEST_EPOCH, redaction: createRedaction() };

const toInput = (texts: Readonly<Record<string, string>>): SiteInput => ({
  name: 'site1',
  files: Object.entries(texts).map(([path, text]) => ({
    path,
    bytes: Buffer.from(text),
    shownAs: path,
  })),
});

function render(site: Site | undefined): readonly NamedText[] {
  if (site?.kind !== 'agent') throw new Error('no site');
  return [...renderClusterManifests(site.cluster, RELEASE), ...renderHostConfigs(site.cluster)];
}

/** Undefined for inputs that a rule of assisted-service refuses, which the installer does not apply. */
function renderFirst({ inputs }: Case): readonly NamedText[] | undefined {
  const all = { 'agent-config.yaml': 'apiVersion: v1beta1\n', ...inputs };
  const { site, problems } = checkAgentSite(toInput(all), OPTIONS);
  return problems.length > 0 ? undefined : render(site);
}

const FENCED =
  'credentials of fencing are in a file of hosts and in no manifest: two nodes without them are refused';

/** Cases that manifests cannot describe, with the reason. */
const REFUSED: Readonly<Record<string, string>> = {
  '14-tnf': FENCED,
  '15-tnf-nofs': FENCED,
  'c55': FENCED,
  'c57': FENCED,
  'c60': FENCED,
};

/** Files that manifests cannot describe, with the reason. */
const LOST: Readonly<Record<string, { readonly files: RegExp; readonly why: string }>> = {
  '33-bmhosts-net': {
    files: /root-device-hints\.yaml$/,
    why: 'hints of platform.baremetal.hosts are in no manifest and in no agent-config.yaml',
  },
};

/** No host has a static address, so that the file has to name the rendezvous host. */
const WITHOUT_RENDEZVOUS: readonly string[] = ['02-sno-nohosts', '32-bmhosts'];

const inFolder = (manifests: readonly NamedText[]): Readonly<Record<string, string>> =>
  Object.fromEntries(
    manifests
      .filter(({ name }) => !name.startsWith('/'))
      .map(({ name, text }) => [`cluster-manifests/${name}`, text]),
  );

function convert(texts: Readonly<Record<string, string>>): ReturnType<typeof checkAnySite> {
  return checkAnySite(convertResources(toInput(texts), undefined), OPTIONS);
}

describe('manifests of a cluster, read in place of install-config.yaml', () => {
  it.each(CASES.map((each) => [each.case, each] as const))(
    'give the same manifests and files of hosts again: %s',
    (name, each) => {
      const first = renderFirst(each);
      if (!first) return;
      const agent = each.inputs['agent-config.yaml'];
      const { site, problems } = convert({
        ...inFolder(first),
        ...(agent !== undefined && { 'agent-config.yaml': agent }),
      });
      const told = problems.map(({ path, problem }) => `${path}: ${problem}`);
      if (REFUSED[name] !== undefined) {
        expect(told).toEqual([expect.stringContaining('must have fencing credentials')]);
        return;
      }
      expect(told).toEqual([]);
      const kept = first.filter((file) => LOST[name]?.files.test(file.name) !== true);
      expect(render(site)).toEqual(kept);
      expect(kept.length < first.length).toBe(LOST[name] !== undefined);
    },
  );

  it.each(CASES.map((each) => [each.case, each] as const))(
    'give the same manifests again without agent-config.yaml: %s',
    (name, each) => {
      const first = renderFirst(each);
      const manifests = first?.filter((file) => !file.name.startsWith('/')) ?? [];
      if (!first || REFUSED[name] !== undefined) return;
      const { site, problems } = convert(inFolder(manifests));
      const told = problems.map(({ path, problem }) => `${path}: ${problem}`);
      if (WITHOUT_RENDEZVOUS.includes(name)) {
        expect(told).toEqual([expect.stringContaining('missing rendezvousIP')]);
        return;
      }
      expect(told).toEqual([]);
      expect(render(site).filter((file) => !file.name.startsWith('/'))).toEqual(manifests);
    },
  );
});
