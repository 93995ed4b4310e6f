import { Option, type Command } from 'commander';
import { openBuildTools, type BuildTools } from '../../recipes/build-tools.ts';
import { checkIsoPlace, claimIso } from '../../stages/pour/claim-iso.ts';
import type { LiveIsoRequest } from '../../recipes/live-iso/live-iso-request.ts';
import { placesOf, type CliHost } from '../host.ts';
import { createConcurrencyOption } from './concurrency.ts';
import { readLiveIsoRequest, type LiveIsoOptions } from './live-request.ts';
import { createRetryOption } from '../retry-option.ts';
import { createOutputOption, type OutputFormat } from '../terminal/output.ts';
import { createLogFormatOption, createProgress, type LogFormat } from '../terminal/progress.ts';

export type LiveCommandOptions = LiveIsoOptions & {
  readonly outputFormat: OutputFormat;
  readonly logFormat: LogFormat;
};

const ISO_OUTPUT = {
  flags: '--output <file>',
  description: 'the ISO to write (default: "appliance.iso")',
};

/** The options that `plan` and `build` share: what one says of a medium the other makes. */
export const addLiveOptions = (command: Command, output = ISO_OUTPUT): Command =>
  command
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

export type LiveCall = {
  readonly config: string;
  readonly options: LiveCommandOptions;
  readonly host: CliHost;
  /** Whether the ISO is written, and not only planned. */
  readonly isBuild?: boolean;
};

/** Runs a recipe with its tools, drawing what it does, and closes everything in any case. */
export async function runLive<Result>(
  call: LiveCall,
  work: (request: LiveIsoRequest, tools: BuildTools) => Promise<Result>,
): Promise<Result> {
  const { config, options, host, isBuild = false } = call;
  const request = await readLiveIsoRequest(config, options, host);
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
