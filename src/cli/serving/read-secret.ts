import { ConfigError } from '../../base/errors.ts';
import { readSecretSource } from '../../config/secret/secret-source.ts';
import type { CliHost } from '../host.ts';

/** What an option names as file:PATH or env:NAME. @throws ConfigError `service.secret` */
export function readSecret(option: string, text: string, { cwd: directory, env }: CliHost): string {
  const reading = readSecretSource(text, { directory, env });
  if (reading.kind === 'value' && reading.from === 'reference') return reading.value;
  throw new ConfigError(
    'service.secret',
    reading.kind === 'value'
      ? `${option} is neither file:PATH nor env:NAME`
      : `${option}: ${reading.problem}`,
    { hint: `give ${option} as file:PATH or env:NAME` },
  );
}
