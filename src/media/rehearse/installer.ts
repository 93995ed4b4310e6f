import { SealiftError } from '../../base/errors.ts';
import { requireMadeFor } from '../../openshift/installer/made-for.ts';
import type { RpmArchitecture } from '../../openshift/release/bundle.ts';
import type { ConfigImageCheck } from '../config-image.ts';
import type { PlayedMedium } from './played-medium.ts';
import { cannotKnow, type Step, unlessAny, will, willNot } from './step.ts';

const PART = 'installer';

/** Plays the installation: what the installer of the medium names, and the configuration image if one is given. */
export function rehearseInstaller(
  { index, live }: PlayedMedium,
  image: ConfigImageCheck | undefined,
): readonly Step[] {
  if (index?.product !== 'live-iso' || live === undefined) return [];
  const { version, reference: digestReference, architecture } = index.release;
  return [
    playMarkers(() => {
      requireMadeFor(live, { version, digestReference, arch: architecture as RpmArchitecture });
    }, version),
    ...(image === undefined
      ? [
          cannotKnow(PART, 'the live system takes a configuration image', {
            reason: 'none was given: name it with --config-image',
          }),
        ]
      : unlessAny(
          PART,
          'the live system takes the configuration image',
          image.obstacles.map(({ problem, hint }) => ({
            reason: hint === undefined ? problem : `${problem}; ${hint}`,
          })),
        )),
    ...(image?.cautions ?? []).map((reason) =>
      cannotKnow(PART, 'the installation ends with this configuration', { reason }),
    ),
  ];
}

function playMarkers(check: () => void, version: string): Step {
  const name = `the installer of the medium installs ${version}`;
  try {
    check();
    return will(PART, name);
  } catch (error) {
    if (!(error instanceof SealiftError)) throw error;
    return willNot(PART, name, { reason: error.message });
  }
}
