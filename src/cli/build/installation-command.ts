import type { Command } from 'commander';
import { openBuildTools, type BuildTools } from '../../recipes/build-tools.ts';
import type { InstallationIsoRequest } from '../../recipes/installation-iso/installation-iso-request.ts';
import { checkIsoPlace, claimIso } from '../../stages/pour/claim-iso.ts';
import { placesOf, type CliHost } from '../host.ts';
import { createProgress, type LogFormat } from '../terminal/progress.ts';
import type { OutputFormat } from '../terminal/output.ts';
import {
  readInstallationRequest,
  type InstallationRequestOptions,
} from './installation-request.ts';

export type InstallationCommandOptions = InstallationRequestOptions & {
  readonly outputFormat: OutputFormat;
  readonly logFormat: LogFormat;
};

/** What `plan` and `build` know of an installation ISO and not of a live ISO. */
export const addInstallationOptions = (command: Command): Command =>
  command
    .option(
      '--coreos-stream <file|url>',
      'take the live ISO that this CoreOS stream names, in JSON',
    )
    .option('--release <pullspec>', 'take live ISO and registry server of this release payload')
    .option('--embed-seed', 'carry the seed image and serve it from the ISO')
    .option('--embed-precached', 'carry the images that the seed names for precaching')
    .option('--embed-release', 'carry all images of --release')
    .option('--embed-image <reference>', 'carry this image too; may be repeated', addTo)
    .option(
      '--registry-image <reference>',
      'registry server on the ISO (default: that of --release)',
    )
    .option(
      '--registries-conf <file>',
      'mirrors to fetch from, instead of the registries.conf of user and system',
    )
    .option('--ca-bundle <file>', 'certificates to trust while fetching, in PEM')
    .option('--insecure-registry <host>', 'fetch without TLS; may be repeated', addTo);

const addTo = (value: string, values: readonly string[] = []): readonly string[] => [
  ...values,
  value,
];

type InstallationCall = {
  readonly config: string;
  readonly options: InstallationCommandOptions;
  readonly host: CliHost;
  /** Whether the ISO is written, and not only planned. */
  readonly isBuild: boolean;
};

/** Runs a recipe with its tools, drawing what it does, and closes everything in any case. */
export async function runInstallation<Result>(
  { config: path, options, host, isBuild }: InstallationCall,
  work: (request: InstallationIsoRequest, tools: BuildTools) => Promise<Result>,
): Promise<Result> {
  const request = await readInstallationRequest(path, options, host);
  await (isBuild ? claimIso(request) : checkIsoPlace(request));
  const progress = createProgress(host, options.logFormat);
  const { config, build, workDir } = request;
  const tools = await openBuildTools({
    ...{ config: { pullSecret: config.pullSecret, build }, workDir },
    ...{ ...placesOf(host), signal: host.signal, emit: progress.listener },
    ...(request.saved && { pinned: request.saved.tags }),
  });
  try {
    return await work(request, tools);
  } finally {
    progress.close();
    await tools.close();
  }
}
