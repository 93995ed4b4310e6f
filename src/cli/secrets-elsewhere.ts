import { Option } from 'commander';
import { UsageError } from '../base/errors.ts';

/* Owns the question that is asked before secrets leave this machine inside an ISO. */

export const createSecretsOption = (): Option =>
  new Option(
    '--allow-secrets',
    'send an ISO that carries secrets to a registry or an object store: all who can read it there have them',
  );

export function requireAllowed(
  output: string,
  secrets: readonly string[],
  { allowSecrets = false }: { readonly allowSecrets?: boolean },
): void {
  if (secrets.length === 0 || allowSecrets) return;
  throw new UsageError('usage.allow-secrets', `the ISO for ${output} carries secrets`, {
    expected: 'an ISO without secrets, or --allow-secrets',
    found: secrets.join(', '),
    hint: 'add --allow-secrets if all who can read it there may have them',
  });
}
