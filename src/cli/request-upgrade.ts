import { dirname } from 'node:path';
import { type ConfigNames, loadConfig, readConfigFiles } from '../config/load.ts';
import { isVersion } from '../openshift/release/version.ts';
import { outputKindOf } from '../outputs/place.ts';
import { type UpgradeIsoRequest, UPGRADE_ISO_RULES } from '../stages/request.ts';
import { heldBy } from '../stages/resolved/use.ts';
import type { CliHost } from './host.ts';
import { refuseOption } from './options.ts';
import { listLockInputs, type LockOptions, readLockUse } from './lock-options.ts';
import { readSignatureGate } from './request-signatures.ts';
import {
  type BuildOptions,
  identifyConfig,
  readEpoch,
  readGraphUrl,
  readIsoPlace,
  readSaved,
  withBuild,
  withoutEmpty,
} from './request.ts';

/* This file owns how options and configuration become the request of an upgrade ISO. */

export const UPGRADE_OUTPUT = 'upgrade.iso';

export type UpgradeRequestOptions = BuildOptions &
  LockOptions & {
    readonly from?: string;
    readonly machineConfig?: boolean;
    readonly prepareHosts?: boolean;
    readonly acknowledge?: readonly string[];
  };

/** Reads all inputs of an upgrade ISO from the command line and the configuration. */
export function readUpgradeRequest(
  names: ConfigNames,
  options: UpgradeRequestOptions,
  host: CliHost,
): UpgradeIsoRequest {
  const { machineConfig = false, prepareHosts = false } = options;
  const acknowledged = readAcknowledged(options);
  if (options.from !== undefined) requireFromVersion(options.from);
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
    acknowledged,
    ...place,
    folder: outputKindOf(place) === 'file' ? dirname(place.output) : host.cwd,
    signatures,
    ...withoutEmpty({ from, graphUrl, saved, epoch: readEpoch(host.env) }),
    ...locking,
  };
}

function readAcknowledged({
  machineConfig = false,
  acknowledge = [],
}: UpgradeRequestOptions): readonly string[] {
  if (acknowledge.length === 0 || machineConfig) return acknowledge;
  throw refuseOption('usage.acknowledge', acknowledge.join(','), {
    expected: '--machine-config beside it',
    hint: 'add --machine-config, or run the printed command on the cluster',
  });
}

/** @throws UsageError `usage.from` */
export function requireFromVersion(from: string): void {
  if (isVersion(from)) return;
  throw refuseOption('usage.from', from, {
    expected: 'the version of the cluster, X.Y.Z',
    hint: 'take it from "oc get clusterversion"',
  });
}
