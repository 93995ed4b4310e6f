import type { TestImage } from './images.ts';
import { buildLayeredImage } from './release.ts';

/** `docker.io/library/registry:2`, as far as a build looks at it. */
export const buildDistributionImage = (architecture = 'amd64'): Promise<TestImage> =>
  buildLayeredImage(
    [
      [['etc/os-release', 'ID=alpine\n']],
      [
        ['bin/registry', 'a registry server\n'],
        ['entrypoint.sh', '#!/bin/sh\n'],
        ['etc/docker/registry/config.yml', 'version: 0.1\n'],
      ],
    ],
    {
      architecture,
      config: { Entrypoint: ['/entrypoint.sh'], Cmd: ['/etc/docker/registry/config.yml'] },
    },
  );
