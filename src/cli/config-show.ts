import { Option, type Command } from 'commander';
import { UsageError } from '../base/errors.ts';
import { formatReadableJson } from '../base/text/json.ts';
import { ConfigProblems } from '../base/errors.ts';
import {
  describeConfig,
  formatConfig,
  listSources,
  toJson,
  type Effective,
  type EnvironmentValues,
} from '../config/effective.ts';
import { checkConfig, nameConfig, readConfigFiles, type ConfigNames } from '../config/load.ts';
import { IMAGE_POLICY_VARIABLE } from '../openshift/release/image-policy.ts';
import { isInstallationConfig } from '../sites/installation.ts';
import { createConfigArgument, createSetOption } from './common-options.ts';
import type { CliHost } from './host.ts';
import { writeResult } from './terminal/output.ts';

type Options = {
  readonly set?: readonly string[];
  readonly outputFormat: 'text' | 'json' | 'yaml';
};

/** `sealift config show [CONFIG...]`. */
export function registerConfig(program: Command, host: CliHost): void {
  const config = program
    .command('config')
    .description('study a configuration')
    .addHelpText('after', '\nExample:\n  $ sealift config show base.yaml nightly.yaml');
  config
    .command('show')
    .description('the configuration after overlays and defaults, with the source of each value')
    .addArgument(createConfigArgument())
    .addOption(createSetOption())
    .addOption(
      new Option('-o, --output-format <format>', 'how the result is printed')
        .choices(['text', 'yaml', 'json'])
        .default('text'),
    )
    .addHelpText(
      'after',
      '\nThe text is YAML with the source of each value in a comment; -o yaml leaves the comments out. Secrets\n' +
        'are shown as references, or masked. A configuration with problems is shown, and then refused.\n' +
        '\nExample:\n  $ sealift config show base.yaml nightly.yaml --set ocpRelease.version=4.22.1',
    )
    .action(async (names: ConfigNames, { set, outputFormat }: Options) => {
      const input = readConfigFiles(names, { set }, host);
      refuseInstallation(input.files[0]);
      const { problems } = checkConfig(input, { env: host.env });
      const effective = describeConfig(input, readVariables(host.env));
      if (effective) await writeResult(host, format(effective, outputFormat));
      if (problems.length > 0) throw new ConfigProblems(nameConfig(input), problems);
    });
}

function format(effective: Effective, outputFormat: Options['outputFormat']): string {
  if (outputFormat !== 'json') return formatConfig(effective, outputFormat === 'text');
  return formatReadableJson({
    configuration: toJson(effective),
    sources: Object.fromEntries(listSources(effective)),
  });
}

function refuseInstallation({
  path,
  text,
}: {
  readonly path: string;
  readonly text: string;
}): void {
  if (!isInstallationConfig(path, text)) return;
  throw new UsageError(
    'usage.other-product',
    '"config show" is for the configuration of an appliance',
    {
      expected: 'the configuration of an appliance',
      found: 'that of an installation ISO',
      hint: 'check it with "sealift validate"',
    },
  );
}

/** Settings that a variable decides where the configuration does not. */
function readVariables(env: NodeJS.ProcessEnv): EnvironmentValues {
  const policy = env[IMAGE_POLICY_VARIABLE] ?? '';
  const keys = env['OCP_SIGNATURE_VERIFICATION_PK'] ?? '';
  return new Map([
    ...(policy === ''
      ? []
      : [['build.disableImagePolicy', { variable: IMAGE_POLICY_VARIABLE, value: true }] as const]),
    ...(keys === ''
      ? []
      : [
          [
            'build.signatureKeys',
            { variable: 'OCP_SIGNATURE_VERIFICATION_PK', value: keys },
          ] as const,
        ]),
  ]);
}
