import type { Command } from 'commander';
import { openBuildTools, type BuildTools } from '../../recipes/build-tools.ts';
import type { UpgradeIsoRequest } from '../../recipes/upgrade-iso/upgrade-iso-request.ts';
import { checkIsoPlace, claimIso } from '../../stages/pour/claim-iso.ts';
import { placesOf, type CliHost } from '../host.ts';
import { createRetryOption } from '../retry-option.ts';
import { createOutputOption, type OutputFormat } from '../terminal/output.ts';
import { createLogFormatOption, createProgress, type LogFormat } from '../terminal/progress.ts';
import { createConcurrencyOption } from './concurrency.ts';
import {
  readUpgradeRequest,
  UPGRADE_OUTPUT,
  type UpgradeRequestOptions,
} from './upgrade-request.ts';

export type UpgradeCommandOptions = UpgradeRequestOptions & {
  readonly outputFormat: OutputFormat;
  readonly logFormat: LogFormat;
};

/** What `plan` and `build` have in common for an upgrade ISO. */
export const addUpgradeOptions = (command: Command): Command =>
  command
    .argument('[config]', 'configuration of an appliance', 'appliance-config.yaml')
    .option('--output <file>', 'the ISO to write', UPGRADE_OUTPUT)
    .option('--work-dir <dir>', 'cache and stage results (default: ".sealift" beside the output)')
    .option(
      '--from <version>',
      'version of the cluster: also carry the releases that it passes by the update graph',
    )
    .option(
      '--machine-config',
      'also write a MachineConfig that upgrades the cluster and removes itself',
    )
    .addOption(createConcurrencyOption())
    .addOption(createRetryOption())
    .addOption(createLogFormatOption())
    .addOption(createOutputOption());

type UpgradeCall = {
  readonly config: string;
  readonly options: UpgradeCommandOptions;
  readonly host: CliHost;
  /** Whether the ISO is written, and not only planned. */
  readonly isBuild: boolean;
};

/** Runs a recipe with its tools, drawing what it does, and closes everything in any case. */
export async function runUpgrade<Result>(
  { config, options, host, isBuild }: UpgradeCall,
  work: (request: UpgradeIsoRequest, tools: BuildTools) => Promise<Result>,
): Promise<Result> {
  const request = readUpgradeRequest(config, options, host);
  await (isBuild ? claimIso(request) : checkIsoPlace(request));
  const progress = createProgress(host, options.logFormat);
  const tools = await openBuildTools({
    ...placesOf(host),
    ...{ config: request.config, workDir: request.workDir, signal: host.signal },
    ...(request.saved && { pinned: request.saved.tags }),
    emit: progress.listener,
  });
  try {
    return await work(request, tools);
  } finally {
    progress.close();
    await tools.close();
  }
}
