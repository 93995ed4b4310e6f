import { ConfigError } from '../../base/errors.ts';
import type { Platform } from '../../registry/descriptor.ts';
import type { RpmArchitecture } from './release-bundle.ts';

const GO_NAMES = { x86_64: 'amd64', aarch64: 'arm64', ppc64le: 'ppc64le' } as const;

type GoArchitecture = (typeof GO_NAMES)[RpmArchitecture];

/**
 * Both names of an architecture: RPM's in configurations and file names, Go's in update graphs and
 * image platforms.
 */
export const archNames = {
  toGo: (arch: RpmArchitecture): GoArchitecture => GO_NAMES[arch],

  /** @throws ConfigError `release.arch-unknown` for an architecture we build no media for. */
  toRpm(name: string): RpmArchitecture {
    for (const [rpm, go] of Object.entries(GO_NAMES)) {
      if (go === name) return rpm as RpmArchitecture;
    }
    const known = Object.values(GO_NAMES).join(', ');
    throw new ConfigError('release.arch-unknown', `architecture "${name}" is not one of ${known}`, {
      expected: known,
      found: name,
      hint: 'name a release for one of these',
    });
  },
} as const;

/** The platform of an image that runs on nodes of this architecture. */
export const platformOf = (arch: RpmArchitecture): Platform => ({
  os: 'linux',
  architecture: archNames.toGo(arch),
});
