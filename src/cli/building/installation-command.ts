import type { Command } from 'commander';
import type { BuildTools } from '../../recipes/build-tools.ts';
import type { InstallationIsoRequest } from '../../recipes/installation-iso/installation-iso-request.ts';
import {
  readInstallationRequest,
  type InstallationRequestOptions,
} from './requests/installation-request.ts';
import { runRecipe, type RecipeCall, type RecipeOptions } from './run-recipe.ts';

export type InstallationCommandOptions = InstallationRequestOptions & RecipeOptions;

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
    .option(
      '--insecure-registry <host>',
      'certificate not verified, passwords sent without encryption; may be repeated',
      addTo,
    );

const addTo = (value: string, values: readonly string[] = []): readonly string[] => [
  ...values,
  value,
];

/** Runs a recipe of an installation ISO. */
export async function runInstallation<Result>(
  call: RecipeCall<InstallationCommandOptions>,
  work: (request: InstallationIsoRequest, tools: BuildTools) => Promise<Result>,
): Promise<Result> {
  const request = await readInstallationRequest(call.config, call.options, call.host);
  const { pullSecret } = request.config;
  return runRecipe(call, { request, config: { pullSecret, build: request.build } }, work);
}
