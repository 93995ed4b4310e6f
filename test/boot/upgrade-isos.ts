import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { SIGNATURE_SETTINGS } from '../../demo/release-signer.ts';
import { startSealift } from '../support/child.ts';
import { serveLocally, type LocalServer } from '../support/local-http.ts';
import { startRegistry, type Registry } from './registry.ts';
import { pushRelease, writeMirrorConf, type Release } from './release.ts';

export type UpgradeIso = {
  readonly version: string;
  readonly iso: string;
  /** The text of `upgrade-machine-config-VERSION.yaml`. */
  readonly machineConfig: string;
};

export type Upgrades = {
  readonly isos: readonly UpgradeIso[];
  /** Images of the releases and their versions. */
  readonly releases: ReadonlyMap<string, string>;
};

type World = {
  readonly work: string;
  readonly registry: Registry;
  readonly releases: readonly Release[];
  /** The update graph. */
  readonly server: LocalServer;
};

/**
 * Upgrade ISOs that sealift builds from signed releases, each with its MachineConfig. `paths` are the
 * versions that a cluster passes, the first of which it has.
 */
export async function buildUpgradeIsos(
  directory: string,
  paths: readonly (readonly string[])[],
): Promise<Upgrades> {
  const work = join(directory, 'upgrades');
  await mkdir(work);
  const registry = await startRegistry(work);
  const releases: Release[] = [];
  for (const version of new Set(paths.flat())) {
    releases.push(await pushRelease({ registry, work, version }));
  }
  const server = await serveLocally((_, response) => {
    response.end(JSON.stringify(graphOf(releases, paths)));
  });
  try {
    const isos: UpgradeIso[] = [];
    for (const path of paths) isos.push(await build(path, { work, registry, releases, server }));
    return {
      isos,
      releases: new Map(releases.map(({ reference, version }) => [reference, version])),
    };
  } finally {
    await server.close();
    await registry.stop();
  }
}

function graphOf(releases: readonly Release[], paths: readonly (readonly string[])[]): object {
  const indexOf = (version = ''): number => releases.findIndex((each) => each.version === version);
  return {
    nodes: releases.map(({ version, reference }) => ({ version, payload: reference })),
    edges: paths.flatMap((path) =>
      path.slice(1).map((version, before) => [indexOf(path[before]), indexOf(version)]),
    ),
  };
}

async function build(path: readonly string[], world: World): Promise<UpgradeIso> {
  const { work, registry, releases, server } = world;
  const [from = '', version = ''] = [path[0], path.at(-1)];
  const config = {
    apiVersion: 'v1beta1',
    kind: 'ApplianceConfig',
    ocpRelease: { version, url: releases.find((each) => each.version === version)?.reference },
    pullSecret: '{"auths":{"quay.io":{"auth":"dXNlcjpwYXNz"}}}',
    build: {
      registriesConf: await writeMirrorConf(work, registry),
      insecureRegistries: [registry.host],
      ...SIGNATURE_SETTINGS,
    },
  };
  await writeFile(join(work, 'appliance-config.yaml'), stringify(config), { mode: 0o600 });
  const iso = join(work, `upgrade-${version}.iso`);
  const { code, stderr } = await startSealift(
    ['build', 'upgrade-iso', '--from', from, '--machine-config', '--output', iso],
    { cwd: work, env: { UPDATE_URL_OVERRIDE: server.url } },
  ).ended;
  if (code !== 0) throw new Error(stderr);
  const machineConfig = await readFile(
    join(work, `upgrade-machine-config-${version}.yaml`),
    'utf8',
  );
  return { version, iso, machineConfig };
}
