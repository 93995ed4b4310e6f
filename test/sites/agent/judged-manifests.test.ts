import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { createRedaction } from '../../../src/base/text/redact.ts';
import { renderClusterManifests } from '../../../src/openshift/agent/cluster-manifests.ts';
import { renderHostConfigs } from '../../../src/openshift/agent/host-configs.ts';
import { INFRA_ENV, parseLiveManifest } from '../../../src/openshift/agent/live-manifest.ts';
import { checkAgentSite } from '../../../src/sites/agent/check.ts';
import { AGENT_LIVE_TEXTS } from '../../support/agent-medium.ts';
import { TEST_EPOCH } from '../../support/site-inputs.ts';

/**
 * Inputs, and the digest of each manifest and host file that the code of openshift-install 4.22 made of them
 * (pkg/asset/agent of the snapshot v1.4.22-ec5), or its refusal.
 */
type Case = {
  readonly case: string;
  readonly inputs: Readonly<Record<string, string>>;
  readonly files?: Readonly<Record<string, string>>;
  readonly refused?: string;
};

const CASES = JSON.parse(
  readFileSync(new URL('installer-manifests.json', import.meta.url), 'utf8'),
) as readonly Case[];

/** Files that differ on purpose. */
const DIFFERENT: Readonly<Record<string, string>> = {
  'hostconfig/fencing-credentials.yaml':
    'the recording has the files of hosts alone; the installer writes it beside them',
};

const digest = (text: string): string => createHash('sha256').update(text).digest('hex');

describe('manifests of a cluster that agents install', () => {
  it.each(CASES.map((each) => [each.case, each] as const))(
    'are those of openshift-install: %s',
    (_, { inputs, files, refused }) => {
      const all = { 'agent-config.yaml': 'apiVersion: v1beta1\n', ...inputs };
      const { site, problems } = checkAgentSite(
        {
          name: 'site1',
          files: Object.entries(all).map(([path, text]) => ({
            path,
            bytes: Buffer.from(text),
            shownAs: path,
          })),
        },
        { epoch: TEST_EPOCH, redaction: createRedaction() },
      );
      const told = problems.map(({ path, problem }) => `${path}: ${problem}`);
      if (refused !== undefined) {
        expect(told.join('\n')).toContain(refused.replace(/^\[|\]$/g, ''));
        return;
      }
      expect(told).toEqual([]);
      if (!site) throw new Error('no site');
      const release = {
        imageSet: 'openshift-was not built correctly',
        infraEnv: parseLiveManifest(INFRA_ENV, AGENT_LIVE_TEXTS[INFRA_ENV] ?? ''),
      };
      const made = [
        ...renderClusterManifests(site.cluster, release),
        ...renderHostConfigs(site.cluster).map(({ name, text }) => ({
          name: name.replace('/etc/assisted/', ''),
          text,
        })),
      ].filter(({ name }) => DIFFERENT[name] === undefined);
      expect(Object.fromEntries(made.map(({ name, text }) => [name, digest(text)]))).toEqual(files);
    },
  );
});
