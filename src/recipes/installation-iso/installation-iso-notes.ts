import { SealiftError } from '../../base/errors.ts';
import { findIgnitionWarnings } from '../../ignition/check.ts';
import { parseIgnition } from '../../ignition/config.ts';
import { parseReference } from '../../registry/reference.ts';
import type { InstallationIsoRequest } from './installation-iso-request.ts';

/**
 * What the build takes and the factory may stumble over; no secret. `replaced` are the files that the
 * base had in its embed area.
 */
export const listNotes = (
  request: InstallationIsoRequest,
  replaced: readonly string[],
): readonly string[] => [
  ...noteReplaced(replaced),
  ...noteSeed(request),
  ...noteOverride(request),
  ...noteMissing(request),
];

/** Somebody has prepared this base, and may count on it. */
const noteReplaced = (names: readonly string[]): readonly string[] =>
  names.length === 0
    ? []
    : [
        `the base ISO was customized: ${names.join(', ')} in its embed area gave way to the new config`,
      ];

/** openshift-install takes any text; the live system asks for it again and again. */
function noteSeed({ config: { seedImage } }: InstallationIsoRequest): readonly string[] {
  try {
    parseReference(seedImage);
    return [];
  } catch (error) {
    if (!(error instanceof SealiftError)) throw error;
    return [`no registry can have the seed image: ${error.message}`];
  }
}

/** Ignition only warns of these, where nobody is looking. */
function noteOverride({ config }: InstallationIsoRequest): readonly string[] {
  const override = config.ignitionConfigOverride?.reveal();
  if (override === undefined) return [];
  return findIgnitionWarnings(parseIgnition(override, 'ignitionConfigOverride')).map(
    ({ path, problem }) => `ignitionConfigOverride at ${path}: ${problem}`,
  );
}

/** A factory without registries learns of it too late otherwise. */
const noteMissing = ({ embed }: InstallationIsoRequest): readonly string[] =>
  embed.seed && !embed.precached && !embed.release
    ? ['the images that the seed precaches are not on the ISO: they are pulled while it installs']
    : [];
