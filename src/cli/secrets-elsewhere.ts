import { Option } from 'commander';
import { UsageError } from '../base/errors.ts';
import { isHere, type IsoPlace } from '../outputs/place.ts';

/* Owns the question that is asked before secrets leave this machine inside an ISO. */

export const createSecretsOption = (): Option =>
  new Option(
    '--allow-secrets',
    'send an ISO that carries secrets to a registry or an object store: all who can read it there have them',
  );

/** @throws UsageError `usage.allow-secrets` */
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

/** Asks the same for an ISO that is built straight to its place. */
export function requireAllowedBuild(
  place: IsoPlace,
  secrets: readonly string[],
  options: { readonly allowSecrets?: boolean },
): void {
  if (!isHere(place)) requireAllowed(place.output, secrets, options);
}
