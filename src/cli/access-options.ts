import type { Command } from 'commander';
import { UsageError } from '../base/errors.ts';
import type { ApplianceConfig } from '../config/appliance-config.ts';
import { loadConfig, readConfigFiles } from '../config/load.ts';
import type { EventListener } from '../engine/engine.ts';
import { openRegistryAccess, type RegistryAccessOptions } from '../stages/tools.ts';
import type { WritingClient } from '../registry/client.ts';
import { addTo, createRetryOption, createSetOption } from './common-options.ts';
import { placesOf, type CliHost } from './host.ts';

/** How commands without a configuration of their own are told of the way to registries. */
export type AccessOptions = {
  readonly config?: readonly string[];
  readonly set?: readonly string[];
  /** Milliseconds. */
  readonly retryFor?: number;
};

export const addAccessOptions = (command: Command): Command =>
  command
    .option(
      '--config <file>',
      'take pull secret, CA and registries.conf of this configuration; later ones are laid over',
      addTo,
    )
    .addOption(createSetOption())
    .addOption(createRetryOption());

/** How registries are reached: as a build would reach them, or with what the environment has. */
export function readAccess(
  options: AccessOptions,
  host: CliHost,
): ApplianceConfig | RegistryAccessOptions['config'] {
  const { retryFor } = options;
  const given = retryFor === undefined ? {} : { retryFor };
  const config = readConfig(options, host);
  if (config === undefined) return { build: { insecureRegistries: [], ...given } };
  return { ...config, build: { ...config.build, ...given } };
}

/** @throws UsageError `usage.set` */
export function readConfig(
  { config, set }: AccessOptions,
  host: CliHost,
): ApplianceConfig | undefined {
  const [first, ...overlays] = config ?? [];
  if (first !== undefined) {
    return loadConfig(readConfigFiles([first, ...overlays], { set }, host), { env: host.env });
  }
  if (set === undefined) return undefined;
  throw new UsageError('usage.set', '--set has no configuration to be laid over', {
    hint: 'name a file with --config',
  });
}

/** Does something with registries, and closes all connections in any case. */
export async function useAccess<Result>(
  options: AccessOptions,
  host: CliHost & { readonly emit: EventListener },
  work: (client: WritingClient) => Promise<Result>,
): Promise<Result> {
  const { emit } = host;
  const config = readAccess(options, host);
  const { client, http } = await openRegistryAccess({ ...placesOf(host), config, emit });
  try {
    return await work(client);
  } finally {
    await http.close();
  }
}
