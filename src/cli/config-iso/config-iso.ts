import type { Command } from 'commander';
import { registerConfigIsoBuild } from './config-iso-build.ts';
import { registerConfigIsoCheck } from './config-iso-check.ts';
import {
  registerConfigIsoDiff,
  registerConfigIsoShow,
  registerConfigIsoGenerations,
} from './config-iso-show.ts';
import { registerConfigIsoValidate } from './config-iso-validate.ts';
import type { CliHost } from '../host.ts';

/** `sealift config-iso build|validate|generations|show|diff|check`. */
export function registerConfigIso(program: Command, host: CliHost): void {
  const command = program
    .command('config-iso')
    .description('the ISOs that make installed seed images the clusters of their sites')
    .addHelpText(
      'after',
      '\nExample:\n  $ sealift config-iso validate ./sites && sealift config-iso build ./sites --out ./isos',
    );
  registerConfigIsoBuild(command, host);
  registerConfigIsoValidate(command, host);
  registerConfigIsoGenerations(command, host);
  registerConfigIsoShow(command, host);
  registerConfigIsoDiff(command, host);
  registerConfigIsoCheck(command, host);
}
