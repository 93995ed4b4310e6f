import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { PACKAGE_ROOT } from '../base/program.ts';
import { parseKeys } from '../openpgp/keys.ts';
import { RED_HAT_KEYS } from '../openshift/release/signature-store.ts';
import type { CliHost } from './host.ts';
import { createOutputOption, writeFormatted, type OutputFormat } from './terminal/output.ts';

export function readVersion(): string {
  const file = readFileSync(new URL('package.json', PACKAGE_ROOT), 'utf8');
  return (JSON.parse(file) as { version: string }).version;
}

/** `sealift version`. */
export function registerVersion(program: Command, host: CliHost): void {
  program
    .command('version')
    .description('print the version, and the keys that releases are verified with by default')
    .addOption(createOutputOption())
    .addHelpText('after', '\nExample:\n  $ sealift version -o json | jq .releaseKeys')
    .action(async ({ outputFormat }: { outputFormat: OutputFormat }) => {
      const keys = parseKeys(Buffer.from(RED_HAT_KEYS), host.now() / 1000);
      const value = {
        version: readVersion(),
        releaseKeys: keys.map(({ fingerprint, name }) => ({ fingerprint, name })),
      };
      await writeFormatted({ host, outputFormat }, value, () => formatText(value));
    });
}

const formatText = (value: {
  readonly version: string;
  readonly releaseKeys: readonly { readonly fingerprint: string; readonly name: string }[];
}): string =>
  [
    `sealift ${value.version}`,
    ...value.releaseKeys.map(({ fingerprint, name }) => `release key  ${fingerprint}  ${name}`),
    '',
  ].join('\n');
