import { chmod, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { digestFile } from '../../src/base/disk/files.ts';
import { buildCatalogImage } from './catalog-images.ts';
import { createLiveWorld, type Outcome } from './live-iso.ts';
import { startPlainRegistry } from './plain-registry.ts';
import { startQuirkyFront, type QuirkyFront, type Quirk } from './quirky-front.ts';
import { buildLayeredImage } from './release.ts';
import { patternOf } from './scripted-registry.ts';
import { USER } from './quirk-access.ts';
import type { Row } from './quirk-rows.ts';

export const COMMANDS = ['plan', 'build', 'resources', 'catalog', 'verify', 'push'] as const;

export type QuirkCommand = (typeof COMMANDS)[number];

export type Run = Outcome & {
  /** The result, in a form that is the same for the same result. */
  readonly result: string;
  readonly front: QuirkyFront;
  /** Questions to the credential helper. */
  readonly helped: number;
};

export type QuirkWorld = {
  readonly run: (command: QuirkCommand, row: Row | undefined) => Promise<Run>;
  readonly close: () => Promise<void>;
};

const DOCUMENTS = [
  { schema: 'olm.package', name: 'a', defaultChannel: 'stable' },
  { schema: 'olm.channel', package: 'a', name: 'stable', entries: [{ name: 'a.v1.0.0' }] },
  {
    schema: 'olm.bundle',
    package: 'a',
    name: 'a.v1.0.0',
    image: `registry.example.com/a/bundle@sha256:${'1'.repeat(64)}`,
    properties: [{ type: 'olm.package', value: { packageName: 'a', version: '1.0.0' } }],
    relatedImages: [],
  },
];

const harmless: Quirk = (_, next) => next();

/**
 * A registry of images in memory and Debian's docker-registry for what is pushed, both behind one front. Every
 * run has a work directory of its own, so that all is fetched.
 */
export async function createQuirkWorld(): Promise<QuirkWorld> {
  const world = await createLiveWorld();
  const at = (name: string): string => join(world.directory, name);
  const store = await startPlainRegistry(at('store'));
  const front = await startQuirkyFront((path) =>
    path.includes('/v2/media/') ? store.host : world.registry.host,
  );
  await addImages(world.registry);
  await prepareHomes(at, front.host);
  await writeFile(
    at('registries.conf'),
    `[[registry]]\nprefix = "${world.registry.host}"\nlocation = "${front.host}"\ninsecure = true\n`,
  );
  await world.writeConfig(
    '  registriesConf: registries.conf',
    `additionalImages: [{name: "${world.registry.host}/team/tool:v1"}]`,
  );
  let count = 0;
  const argsOf = (command: QuirkCommand, row: Row | undefined): readonly string[] => {
    const name = `run-${count}`;
    const patience = ['--retry-for', row?.isEndless === true ? '1s' : '30s'];
    const more = ['--work-dir', at(name), ...patience];
    switch (command) {
      case 'build':
        return ['build', '--output', at(`${name}.iso`), ...more];
      case 'catalog':
        return ['catalog', 'list', `${front.host}/team/catalog:v1`, ...more];
      case 'verify':
        return ['verify', `oci://${front.host}/media/first:v1`];
      case 'push':
        return ['push', at('first.iso'), `oci://${front.host}/media/${name}:v1`, ...patience];
      case 'plan':
      case 'resources':
        return [command, '-o', 'json', ...more];
    }
  };
  const readResult = async (command: QuirkCommand, { stdout }: Outcome): Promise<string> => {
    if (command === 'build') return digestFile(at(`run-${count}.iso`));
    if (command === 'push') return readDigest(`${store.host}/v2/media/run-${count}/manifests/v1`);
    if (command === 'plan') return String((JSON.parse(stdout) as { isoSize: number }).isoSize);
    return command === 'verify' ? '' : stdout;
  };
  const run: QuirkWorld['run'] = async (command, row) => {
    count += 1;
    const home = at(row?.credential ?? 'nobody');
    const log = join(home, 'asked');
    await writeFile(log, '');
    Object.assign(world.env, { HOME: home, HELPER_LOG: log, PATH: `${home}:/usr/bin:/bin` });
    front.use(row?.create() ?? harmless);
    const outcome = await world.run(...argsOf(command, row));
    const helped = (await readLines(log)).length;
    const result = outcome.exitCode === 0 ? await readResult(command, outcome) : '';
    for (const name of [`run-${count}`, `run-${count}.iso`]) {
      await rm(at(name), { recursive: true, force: true });
    }
    return { ...outcome, result, front, helped };
  };
  front.use(harmless);
  const first = await world.run('build', '--output', at('first.iso'), '--work-dir', at('first'));
  const pushed = await world.run('push', at('first.iso'), `oci://${front.host}/media/first:v1`);
  if (first.exitCode + pushed.exitCode > 0) throw new Error(first.stderr + pushed.stderr);
  return {
    run,
    async close() {
      await front.close();
      await store.close();
      await world.close();
    },
  };
}

async function addImages(registry: Parameters<typeof addTool>[0]): Promise<void> {
  await addTool(registry);
  const text = DOCUMENTS.map((document) => JSON.stringify(document)).join('\n');
  const catalog = await buildCatalogImage([
    {
      entries: [
        ['configs/a/catalog.json', text],
        ['usr/bin/opm', patternOf(20_000, 7)],
      ],
    },
  ]);
  registry.add('team/catalog', catalog, 'v1');
}

async function addTool(registry: {
  readonly add: (
    repository: string,
    image: Awaited<ReturnType<typeof buildLayeredImage>>,
    tag: string,
  ) => void;
}): Promise<void> {
  const layers = [1, 2].map((seed) => [[`usr/bin/tool-${seed}`, patternOf(30_000, seed)]] as const);
  registry.add('team/tool', await buildLayeredImage(layers), 'v1');
}

/** Homes of users: without a credential, with an entry, with a helper, with a helper that is not there. */
async function prepareHomes(at: (name: string) => string, host: string): Promise<void> {
  const auth = Buffer.from(`${USER.username}:${USER.password}`).toString('base64');
  const homes = {
    'nobody': {},
    'entry': { auths: { [`https://${host}/v2/`]: { auth } } },
    'helper': { credHelpers: { [host]: 'count' } },
    'missing helper': { credsStore: 'nowhere' },
  };
  for (const [name, config] of Object.entries(homes)) {
    await mkdir(at(join(name, '.docker')), { recursive: true });
    await writeFile(at(join(name, '.docker/config.json')), JSON.stringify(config));
  }
  const helper = at('helper/docker-credential-count');
  const answer = `{"Username":"${USER.username}","Secret":"${USER.password}"}`;
  await writeFile(
    helper,
    `#!/bin/sh\ncat >> "$HELPER_LOG"\necho >> "$HELPER_LOG"\necho '${answer}'\n`,
  );
  await chmod(helper, 0o755);
}

const readLines = async (path: string): Promise<readonly string[]> =>
  (await readFile(path, 'utf8')).split('\n').filter((line) => line !== '');

async function readDigest(url: string): Promise<string> {
  const accept = 'application/vnd.oci.image.manifest.v1+json';
  const response = await fetch(`http://${url}`, { headers: { accept } });
  return response.headers.get('docker-content-digest') ?? String(response.status);
}
