import { SealiftError } from '../../base/errors.ts';
import type { IgnitionConfig } from '../../ignition/index.ts';
import { EXTRA_MANIFESTS } from '../../openshift/agent/configure.ts';
import { findReleaseImage } from '../../openshift/agent/live-system.ts';
import { requireMadeFor, TOLD_IMAGE_SET } from '../../openshift/installer/made-for.ts';
import { planExtraManifests } from '../../openshift/node/manifests.ts';
import { explainMirrorNames } from '../../openshift/node/read-registry.ts';
import type { RpmArchitecture } from '../../openshift/release/bundle.ts';
import type { ConfigImageCheck } from '../config-image.ts';
import { readExtraManifests } from '../named-images.ts';
import type { PlayedMedium } from './played-medium.ts';
import { cannotKnow, type RehearsedStep, unless, unlessAny, will, willNot } from './step.ts';

const PART = 'installer';

/** Plays the installation: what the installer of the medium names, and the configuration image if one is given. */
export function rehearseInstaller(
  { index, live, files }: PlayedMedium,
  image: ConfigImageCheck | undefined,
): readonly RehearsedStep[] {
  if (index?.product !== 'live-iso' || live === undefined) return [];
  const { version, reference: digestReference, architecture } = index.release;
  return [
    playMarkers(() => {
      requireMadeFor(live, { version, digestReference, arch: architecture as RpmArchitecture });
    }, version),
    playImageSet(files.get(TOLD_IMAGE_SET)),
    ...playManifests(live),
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

function playMarkers(check: () => void, version: string): RehearsedStep {
  const name = `the installer of the medium installs ${version}`;
  try {
    check();
    return will(PART, name);
  } catch (error) {
    if (!(error instanceof SealiftError)) throw error;
    return willNot(PART, name, { reason: error.message });
  }
}

const playImageSet = (told: Uint8Array | undefined): RehearsedStep =>
  unless(PART, 'the assisted service learns the image of the release', {
    place: TOLD_IMAGE_SET,
    reason:
      told !== undefined && findReleaseImage(Buffer.from(told)) === undefined
        ? 'it names no image'
        : undefined,
  });

/** By the rules of a build, and those of the API for names in mirror sets. */
function playManifests(live: IgnitionConfig): readonly RehearsedStep[] {
  const name = 'the cluster takes the manifests of the medium';
  const manifests = readExtraManifests(live);
  const wrong = explainMirrorNames(manifests.map(({ text }) => text));
  const place = EXTRA_MANIFESTS;
  try {
    planExtraManifests(manifests, { useDefaultSourceNames: false });
    return unlessAny(
      PART,
      name,
      wrong.map((reason) => ({ reason, place })),
    );
  } catch (error) {
    if (!(error instanceof SealiftError)) throw error;
    return [willNot(PART, name, { reason: error.message, place })];
  }
}
