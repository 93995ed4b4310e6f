import type { Command } from 'commander';
import type { BuildTools } from '../../recipes/build-tools.ts';
import type { UpgradeIsoRequest } from '../../recipes/upgrade-iso/upgrade-iso-request.ts';
import { createRetryOption } from '../retry-option.ts';
import { createOutputOption } from '../terminal/output.ts';
import { createLogFormatOption } from '../terminal/progress.ts';
import { createConcurrencyOption } from './concurrency.ts';
import { runRecipe, type RecipeCall, type RecipeOptions } from './run-recipe.ts';
import { addSignatureOptions } from './signature-options.ts';
import {
  readUpgradeRequest,
  UPGRADE_OUTPUT,
  type UpgradeRequestOptions,
} from './upgrade-request.ts';

export type UpgradeCommandOptions = UpgradeRequestOptions & RecipeOptions;

/** What `plan` and `build` have in common for an upgrade ISO. */
export const addUpgradeOptions = (command: Command): Command =>
  addSignatureOptions(command)
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
    .option(
      '--prepare-hosts',
      'also write MachineConfigs for hosts that were installed without support for upgrade ISOs',
    )
    .addOption(createConcurrencyOption())
    .addOption(createRetryOption())
    .addOption(createLogFormatOption())
    .addOption(createOutputOption());

/** Runs a recipe of an upgrade ISO. */
export async function runUpgrade<Result>(
  call: RecipeCall<UpgradeCommandOptions>,
  work: (request: UpgradeIsoRequest, tools: BuildTools) => Promise<Result>,
): Promise<Result> {
  const request = readUpgradeRequest(call.config, call.options, call.host);
  return runRecipe(call, { request, config: request.config }, work);
}
