import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  changeBySealift,
  compareConfigs,
  DIFFERENT_SETS,
  formatInput,
  listValueSets,
  rendezvousIpOf,
  SETS_OF_NMSTATE,
  type ValueSet,
} from '../support/value-sets.ts';

/*
 * Asks a real openshift-install, of any release, for the files of each recorded set of values. It comes out of a release
 * payload and cannot be installed here: JUDGED_INSTALLER names its file.
 */

const INSTALLER = process.env['JUDGED_INSTALLER'];
const AGENT_CONFIG = 'apiVersion: v1beta1\nkind: AgentConfig\nmetadata: { name: appliance }\n';

/** The Ignition config that the installer writes; undefined if it refuses the values. */
function askInstaller(installer: string, set: ValueSet): string | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'sealift-installer-'));
  try {
    const manifests = join(folder, 'cluster-manifests');
    mkdirSync(manifests);
    writeFileSync(join(manifests, 'infraenv.yaml'), formatInput(set.infraenv));
    writeFileSync(join(manifests, 'pull-secret.yaml'), formatInput(set.pull_secret));
    const networks = set.nmstateconfigs.map(formatInput).join('---\n');
    if (networks !== '') writeFileSync(join(manifests, 'nmstateconfig.yaml'), networks);
    const ip = rendezvousIpOf(set);
    if (ip !== undefined) {
      writeFileSync(join(folder, 'agent-config.yaml'), `${AGENT_CONFIG}rendezvousIP: "${ip}"\n`);
    }
    const args = ['agent', 'create', 'unconfigured-ignition', '--dir', folder];
    execFileSync(installer, args, { stdio: 'pipe' });
    return readFileSync(join(folder, 'unconfigured-agent.ign'), 'utf8');
  } catch (error) {
    if ((error as { readonly status?: unknown }).status !== undefined) return undefined;
    throw error;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The id that the installer draws for each config. */
const hideId = (config: string): string => {
  const value = JSON.parse(config) as {
    readonly storage: { readonly files: readonly { path: string; contents: { source: string } }[] };
  };
  const drawn = /INFRA_ENV_ID=[\da-f-]{36}/;
  for (const { path, contents } of value.storage.files) {
    if (!path.endsWith('/assisted-service.env')) continue;
    const [head = '', body = ''] = contents.source.split(/,(.*)/s);
    const text = Buffer.from(body, 'base64').toString('utf8').replace(drawn, 'INFRA_ENV_ID=0');
    contents.source = `${head},${Buffer.from(text).toString('base64')}`;
  }
  return JSON.stringify(value);
};

const sets = listValueSets().filter(
  ({ name }) => !SETS_OF_NMSTATE.includes(name) && !Object.hasOwn(DIFFERENT_SETS, name),
);

describe.skipIf(INSTALLER === undefined || sets.length === 0)('openshift-install', () => {
  let pristine = '';

  it('writes a config without values', () => {
    const [none] = listValueSets();
    const config = none && askInstaller(INSTALLER ?? '', none);
    expect(config).toBeDefined();
    pristine = hideId(config ?? '');
  });

  it.each(sets.map((set) => [set.name, set] as const))(
    'writes the files that sealift writes: %s',
    (_, set) => {
      const config = askInstaller(INSTALLER ?? '', set);
      const theirs = config === undefined ? 'refused' : compareConfigs(pristine, hideId(config));
      expect(changeBySealift(set, pristine)).toEqual(theirs);
    },
  );
});
