import type { Command } from 'commander';
import { lstatSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { readInputFile, unlessAbsent } from '../../base/disk/files.ts';
import { useTemporaryFolder } from '../../base/disk/temporary.ts';
import { ConfigError } from '../../base/errors.ts';
import { createBlobCache } from '../../base/store/blob-cache.ts';
import { useMedium } from '../../media/open.ts';
import { readCarriedSeed } from '../../media/seed.ts';
import {
  parseSeedCluster,
  SEED_INFO_PATH,
  type SeedCluster,
} from '../../openshift/installation/seed.ts';
import { isElsewhere } from '../../outputs/read/open.ts';
import { fetchSeedCluster } from '../../stages/1-resolve/read-seed.ts';
import type { SitesRequest } from '../../stages/request.ts';
import { requireReferences } from '../ask-installation.ts';
import type { CliHost } from '../host.ts';
import { runWithProgress, useWatched, type Watched } from '../named-media.ts';
import { addAccessOptions, refuseOption, useAccess, type AccessOptions } from '../options.ts';
import type { LogFormat } from '../terminal/progress.ts';

/* Owns `--seed`: where the description of a seed comes from. */

export type SeedOptions = AccessOptions & {
  readonly seed?: string;
  readonly seedVersion?: string;
  readonly logFormat: LogFormat;
};

export const addSeedOption = (command: Command): Command =>
  addAccessOptions(
    command.option(
      '--seed <source>',
      'compare the sites with this seed: a reference, an installation ISO that carries it, or a folder with its manifest.json',
    ),
  );

/** Reads the seed that the sites are compared with, and with it the version of its nodes. */
export async function readAskedSeed(
  options: SeedOptions,
  host: CliHost,
): Promise<Pick<SitesRequest, 'seed' | 'seedVersion'>> {
  const { seed: source, seedVersion: asked, logFormat } = options;
  if (source === undefined) return asked === undefined ? {} : { seedVersion: asked };
  const seed = await runWithProgress({ stage: 'read seed', logFormat, host }, (watched) =>
    openSeed(source, options, { ...host, ...watched }),
  );
  if (!seed) {
    throw new ConfigError(
      'seed-image.unknown',
      `${source} does not say which cluster it was made from`,
      {
        expected: `a seed image of lifecycle-agent, with ${SEED_INFO_PATH} or its label`,
        found: 'neither of them',
        hint: 'name the seed image that the hosts are installed from',
      },
    );
  }
  const { version } = seed;
  if (asked !== undefined && asked !== version && !version.startsWith(`${asked}.`)) {
    throw refuseOption('usage.seed-version', asked, {
      expected: `${version}, the version of --seed`,
      hint: 'leave --seed-version out',
    });
  }
  return { seed, ...(version !== '' && { seedVersion: version }) };
}

async function openSeed(
  source: string,
  options: SeedOptions,
  host: CliHost & Watched,
): Promise<SeedCluster | undefined> {
  const path = resolve(host.cwd, source);
  if (unlessAbsent(() => lstatSync(path)) === undefined && !isElsewhere(source)) {
    return fetchSeed(source, options, host);
  }
  if (!isElsewhere(source) && statSync(path).isDirectory()) {
    const file = join(path, SEED_INFO_PATH);
    const info = unlessAbsent(() => readInputFile(file, { domain: 'seed-image' }));
    return info && parseSeedCluster(info.toString('utf8'));
  }
  return useWatched(source, host, (medium) =>
    useMedium(medium, (iso) => readCarriedSeed(iso, host.signal)),
  );
}

function fetchSeed(
  seedImage: string,
  access: AccessOptions,
  host: CliHost & Watched,
): Promise<SeedCluster | undefined> {
  requireReferences('--seed', seedImage);
  return useTemporaryFolder((workDir) =>
    useAccess(access, host, (client) => {
      const { signal, onProgress } = host;
      const tools = { client, cache: createBlobCache(workDir), workDir, signal, onProgress };
      return fetchSeedCluster({ seedImage, arch: 'x86_64' }, tools);
    }),
  );
}
