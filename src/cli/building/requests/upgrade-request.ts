import { dirname } from 'node:path';
import { isObjectOutput } from '../../../outputs/output.ts';
import { loadConfig, readConfigFiles, type ConfigNames } from '../../../config/load.ts';
import { isVersion } from '../../../openshift/release/version.ts';
import { type UpgradeIsoRequest, UPGRADE_ISO_RULES } from '../../../stages/request.ts';
import { heldBy } from '../../../stages/resolved/use.ts';
import type { CliHost } from '../../host.ts';
import { readGraphUrl, readEpoch } from '../../environment.ts';
import {
  identifyConfig,
  readIsoPlace,
  readSignatureGate,
  readSaved,
  type BuildOptions,
} from './build-options.ts';
import { listLockInputs, readLockUse, type LockOptions } from './lock-options.ts';
import { withBuild, withoutEmpty } from './live-request.ts';
import { refuseOption } from '../../common-options.ts';

export const UPGRADE_OUTPUT = 'upgrade.iso';

export type UpgradeRequestOptions = BuildOptions &
  LockOptions & {
    readonly from?: string;
    readonly machineConfig?: boolean;
    readonly prepareHosts?: boolean;
  };

/** Everything an upgrade ISO is made from, out of the command line and the configuration. */
export function readUpgradeRequest(
  names: ConfigNames,
  options: UpgradeRequestOptions,
  host: CliHost,
): UpgradeIsoRequest {
  const { machineConfig = false, prepareHosts = false } = options;
  if (options.from !== undefined) checkVersion(options.from);
  const input = readConfigFiles(names, options, host);
  const config = loadConfig(input, { env: host.env, rules: UPGRADE_ISO_RULES });
  const graphUrl = readGraphUrl(host.env);
  const saved = readSaved(options, 'upgrade-iso', host);
  const locking = readLockUse(options, { product: 'upgrade-iso', config: input }, host);
  const from = options.from ?? heldBy(locking.lock)?.path?.from;
  const signatures = readSignatureGate(options, host, config.build);
  const place = readIsoPlace(
    { ...options, output: options.output ?? UPGRADE_OUTPUT },
    {
      config: input,
      inputs: [options.plan, signatures.files, signatures.keys, ...listLockInputs(locking)],
    },
    host,
  );
  return {
    config: withBuild(config, options),
    configuration: identifyConfig(input),
    machineConfig,
    prepareHosts,
    ...place,
    folder: place.device || isObjectOutput(place.output) ? host.cwd : dirname(place.output),
    signatures,
    ...withoutEmpty({ from, graphUrl, saved, epoch: readEpoch(host.env) }),
    ...locking,
  };
}

function checkVersion(from: string): void {
  if (isVersion(from)) return;
  throw refuseOption('usage.from', from, {
    expected: 'the version of the cluster, X.Y.Z',
    hint: 'take it from "oc get clusterversion"',
  });
}
