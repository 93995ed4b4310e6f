import { Option, type Command } from 'commander';
import type { BuildTools } from '../../recipes/build-tools.ts';
import type { LiveIsoRequest } from '../../recipes/live-iso/live-iso-request.ts';
import { createConcurrencyOption } from './requests/concurrency.ts';
import { readLiveIsoRequest, type LiveIsoOptions } from './requests/live-request.ts';
import { addSignatureOptions } from './requests/signature-options.ts';
import { runRecipe, type RecipeCall, type RecipeOptions } from './run-recipe.ts';
import { createRetryOption } from '../retry-option.ts';
import { createOutputOption } from '../terminal/output.ts';
import { createLogFormatOption } from '../terminal/progress.ts';

export type LiveCommandOptions = LiveIsoOptions & RecipeOptions;

const ISO_OUTPUT = {
  flags: '--output <file>',
  description: 'the ISO to write (default: "appliance.iso")',
};

/** The options that `plan` and `build` share: what one says of a medium the other makes. */
export const addLiveOptions = (command: Command, output = ISO_OUTPUT): Command =>
  addSignatureOptions(command)
    .option(output.flags, output.description)
    .option('--work-dir <dir>', 'cache and stage results (default: ".sealift" beside the output)')
    .addOption(createConcurrencyOption())
    .addOption(createRetryOption())
    .addOption(
      new Option('--ignition <how>', 'who renders the unconfigured ignition').choices([
        ...['installer', 'embedded'],
      ]),
    )
    .option('--base-iso <file>', 'use this CoreOS live ISO instead of the one in the payload')
    .addOption(createLogFormatOption())
    .addOption(createOutputOption());

/** Runs a recipe of a live ISO. */
export async function runLive<Result>(
  call: RecipeCall<LiveCommandOptions>,
  work: (request: LiveIsoRequest, tools: BuildTools) => Promise<Result>,
): Promise<Result> {
  const request = readLiveIsoRequest(call.config, call.options, call.host);
  return runRecipe(call, { request, config: request.config }, work);
}
