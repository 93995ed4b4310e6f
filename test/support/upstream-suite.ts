import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isAtLeast } from '../../src/openshift/release/version.ts';
import { createLiveWorld, type LiveWorld, type Outcome } from './live-iso.ts';
import { serveLocally, type LocalServer } from './local-http.ts';
import { addOveCatalog, parseOveSelection, type OveSelection } from './ove.ts';
import { buildDistributionImage } from './registry-images.ts';
import { addRelease, TEST_INSTALLER, type TestRelease } from './release.ts';
import { requireTool } from './tools.ts';
import { ERAS, type UpstreamConfiguration } from './upstream-configurations.ts';

const COMMANDS = ['validate', 'plan', 'build', 'verify'] as const;
const PULL_SECRET = `pullSecret: '{"auths":{"quay.io":{"auth":"dXNlcjpzZWNyZXQtd29yZA=="}}}'`;
/** Whose names the images have; all are served by the test's registry. */
const REGISTRIES = ['quay.io', 'registry.redhat.io', 'docker.io'];
/** Writes what openshift-install writes, and has room for its release as that has. */
export const INSTALLER = Buffer.concat([
  Buffer.from(
    [
      '#!/bin/sh',
      'while [ $# -gt 0 ]; do [ "$1" = --dir ] && dir=$2; shift; done',
      'test -f "$dir/cluster-manifests/infraenv.yaml" || exit 3',
      `echo '{"ignition":{"version":"3.2.0"}}' > "$dir/unconfigured-agent.ign"`,
      'exit 0\n',
    ].join('\n'),
  ),
  TEST_INSTALLER,
]);
const NEWEST_SERVER = '4.21.7';
export const SIGNATURES = [
  '--signatures',
  'release-signatures',
  '--signature-keys',
  'release-keys.gpg',
];

/** Of the commands. */
export const ARGUMENTS: Readonly<Record<(typeof COMMANDS)[number], readonly string[]>> = {
  validate: ['validate'],
  plan: ['plan', '-o', 'json', ...SIGNATURES],
  build: ['build', '--output', 'x.iso', ...SIGNATURES],
  verify: ['verify', 'x.iso'],
};

type Row = { readonly name: string; readonly version: string; readonly cells: string[] };

const hasTools = ['genisoimage', 'isohybrid'].map((tool) => requireTool(tool)).every(Boolean);

/** What further tests of a suite use. */
export type UpstreamTools = {
  readonly releases: Map<string, TestRelease>;
  readonly at: (name: string) => string;
  readonly configure: (configuration: UpstreamConfiguration) => Promise<void>;
  readonly readRegistry: () => Promise<{ readonly image: string; readonly unit: string }>;
  readonly world: () => LiveWorld;
  readonly graph: () => LocalServer;
};

/** Tests of configurations as they stand upstream, in one world with all releases that they name. */
export function describeUpstream(
  title: string,
  configurations: readonly UpstreamConfiguration[],
  more: (tools: UpstreamTools) => void = () => undefined,
): void {
  describe.skipIf(!hasTools || configurations.length === 0)(title, () => {
    const releases = new Map<string, TestRelease>();
    const rows: Row[] = [];
    let graph: LocalServer;
    let world: LiveWorld;
    const at = (name: string): string => join(world.directory, name);

    beforeAll(async () => {
      graph = await serveLocally((request, response) => {
        if (request.url?.startsWith('/gone')) return void response.writeHead(404).end();
        const query = new URL(request.url ?? '', 'http://graph').searchParams;
        const minor = /-(\d+\.\d+)$/.exec(query.get('channel') ?? '')?.[1] ?? '';
        const nodes = [...releases].flatMap(([key, { pullspec }]) => {
          const [version = '', arch] = key.split(' ');
          const isListed = arch === query.get('arch') && version.startsWith(`${minor}.`);
          return isListed ? [{ version, payload: pullspec, metadata: {} }] : [];
        });
        response.setHeader('content-type', 'application/json');
        response.end(JSON.stringify({ version: 1, nodes, edges: [] }));
      });
      world = await createLiveWorld();
      world.env['UPDATE_URL_OVERRIDE'] = graph.url;
      world.env['CONTAINERS_REGISTRIES_CONF'] = at('registries.conf');
      await serveEverything();
    }, 120_000);
    afterAll(async () => {
      await world.close();
      await graph.close();
    });

    async function serveEverything(): Promise<void> {
      const { registry } = world;
      const conf = REGISTRIES.map(
        (name) =>
          `[[registry]]\nprefix = "${name}"\nlocation = "${registry.host}"\ninsecure = true\n`,
      );
      await writeFile(at('registries.conf'), conf.join('\n'));
      const iso = await readFile(at('test.iso'));
      for (const version of [...ERAS, '4.21.2']) {
        for (const architecture of ['amd64', 'arm64']) {
          const foreignInstallers = { amd64: INSTALLER, arm64: INSTALLER };
          const options = { version, iso, architecture, installer: INSTALLER, foreignInstallers };
          const release = await addRelease({ ...registry, host: 'quay.io' }, options);
          releases.set(`${version} ${architecture}`, release);
        }
      }
      const server = await buildDistributionImage();
      registry.add('library/registry', server, '2');
      registry.add('libpod/registry', server, '2.8');
      for (const selection of mergeSelections(configurations))
        await addOveCatalog(registry, selection);
    }

    const configure = async ({ lines, version, arch }: UpstreamConfiguration): Promise<void> => {
      const release = releases.get(`${version} ${arch === undefined ? 'amd64' : 'arm64'}`);
      const text = [...lines, PULL_SECRET, ''].join('\n');
      await writeFile(
        at('appliance-config.yaml'),
        text.replace('RELEASE_URL', release?.pullspec ?? ''),
      );
      await rm(at('x.iso'), { force: true });
    };

    const readRegistry = async (): Promise<{ readonly image: string; readonly unit: string }> => {
      const { stdout } = await world.run('ignition', 'show', '--bootstrap', 'x.iso');
      const config = JSON.parse(stdout) as {
        storage: { files: { path: string; contents: { source: string } }[] };
        systemd: { units: { name: string; contents?: string }[] };
      };
      const file = config.storage.files.find(({ path }) => path === '/etc/assisted/registry.env');
      const [, base64 = ''] = file?.contents.source.split('base64,') ?? [];
      const text = Buffer.from(base64, 'base64').toString('utf8');
      const unit = config.systemd.units.find(({ name }) => name === 'start-local-registry.service');
      return {
        image: /^REGISTRY_IMAGE=(.*)$/m.exec(text)?.[1] ?? '',
        unit: unit?.contents ?? '',
      };
    };

    it.each(configurations)(
      '$name ($version) is validated, planned, built and verified as it stands with a pull secret',
      { timeout: 300_000 },
      async (configuration) => {
        const { name, version, arch, lines } = configuration;
        const row: Row = { name, version, cells: [] };
        rows.push(row);
        await configure(configuration);
        const outcomes: Record<string, Outcome> = {};
        for (const command of COMMANDS) {
          const outcome = await world.run(...ARGUMENTS[command]);
          row.cells.push(outcome.exitCode === 0 ? 'ok' : String(outcome.exitCode));
          expect(outcome.exitCode, `${command}: ${outcome.stderr}`).toBe(0);
          outcomes[command] = outcome;
        }
        const planned = JSON.parse(outcomes['plan']?.stdout ?? '') as {
          readonly release: { readonly version: string };
          readonly isoSize: number;
        };
        expect(planned.release.version).toBe(version);
        expect((await readFile(at('x.iso'))).length).toBe(planned.isoSize);
        const { image, unit } = await readRegistry();
        const isConfigured = /^ {2}uri: \S*registry/m.test(lines.join('\n'));
        const server = isAtLeast(version, '4.21.0') ? version : NEWEST_SERVER;
        const component = releases.get(`${server} ${arch === undefined ? 'amd64' : 'arm64'}`)
          ?.components['docker-registry'];
        if (isConfigured) expect(image).toMatch(/^(docker|quay)\.io\/lib\w+\/registry@sha256:/);
        else expect(image).toBe(`quay.io/ocp/art-dev@${component ?? ''}`);
        expect(unit.includes('--entrypoint=/usr/bin/distribution')).toBe(!isConfigured);
        row.cells.push(isConfigured ? 'configured' : server);
      },
    );

    it('succeed with every command, as a table shows', () => {
      const widths = [52, 9, ...COMMANDS.map(() => 9), 10];
      const format = (cells: readonly string[]): string =>
        cells
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join(' ')
          .trimEnd();
      const good = rows.filter(({ cells }) => cells.filter((cell) => cell === 'ok').length === 4);
      const table = [
        format(['configuration', 'release', ...COMMANDS, 'registry of']),
        ...rows.map(({ name, version, cells }) => format([name, version, ...cells])),
        `${good.length} of ${configurations.length} configurations`,
      ];
      process.stdout.write(`${table.join('\n')}\n`);
      expect(rows).toHaveLength(configurations.length);
      expect(good).toHaveLength(configurations.length);
    });
    more({ releases, at, configure, readRegistry, world: () => world, graph: () => graph });
  });
}

/** One catalog of each name, with every package that any configuration asks of it. */
function mergeSelections(
  configurations: readonly UpstreamConfiguration[],
): readonly OveSelection[] {
  const merged = new Map<string, Map<string, Package>>();
  for (const { lines } of configurations) {
    const text = lines.join('\n');
    if (!/^operators:/m.test(text)) continue;
    const { catalog, packages } = parseOveSelection(text);
    const known = merged.get(catalog) ?? new Map<string, Package>();
    merged.set(catalog, known);
    for (const { name, channels = ANY_CHANNEL } of packages as readonly AskedPackage[]) {
      known.set(name, { name, channels });
    }
  }
  return [...merged].map(([catalog, packages]) => ({ catalog, packages: [...packages.values()] }));
}

/** A configuration may leave the channels out. */
type AskedPackage = { readonly name: string; readonly channels?: Package['channels'] };
type Package = OveSelection['packages'][number];
const ANY_CHANNEL = [{ name: 'stable' }];
