import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { runProcess } from '../../../src/base/process.ts';
import {
  loadRegistriesConf,
  type RegistriesConfPlaces,
} from '../../../src/registry/client/mirror-files.ts';
import { parseReference } from '../../../src/registry/reference.ts';
import { createTestClient } from '../../support/registry-client.ts';
import {
  imageManifest,
  startScriptedRegistry,
  type ScriptedRegistry,
} from '../../support/scripted-registry.ts';
import { requireTool } from '../../support/tools.ts';

let root: string;
const at = (path: string): string => join(root, path);

/** A file with one entry: `quay.io` is fetched from a host that has the file's own name. */
async function write(path: string, location = 'x.test'): Promise<void> {
  await mkdir(dirname(at(path)), { recursive: true });
  await writeFile(at(path), `[[registry]]\nprefix = "quay.io"\nlocation = "${location}"\n`);
}

const placesOf = (env: Readonly<Record<string, string>> = {}): RegistriesConfPlaces => ({
  env: { HOME: at('home'), ...env },
  cwd: root,
  containersDir: at('etc'),
});

const filesOf = async (env?: Readonly<Record<string, string>>, file?: string) =>
  (await loadRegistriesConf(file, placesOf(env))).files.map((path) => path.slice(root.length + 1));

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'registries-'));
});
afterEach(() => rm(root, { recursive: true }));

const SYSTEM = [
  'etc/registries.conf',
  'etc/registries.conf.d/1.conf',
  'etc/registries.conf.d/2.conf',
];
const USER = ['home/.config/containers/registries.conf'];
const USER_DROP_INS = ['home/.config/containers/registries.conf.d/3.conf'];
const XDG = ['xdg/containers/registries.conf', 'xdg/containers/registries.conf.d/4.conf'];
const writeAll = async (...paths: string[]) => Promise.all(paths.map((path) => write(path)));

describe('the files of registries.conf', () => {
  it('are an empty list if none exists', async () => {
    expect(await loadRegistriesConf(undefined, placesOf())).toEqual({ registries: [], files: [] });
  });

  it("are the system's file and drop-ins, then the drop-ins of the user", async () => {
    await writeAll(...SYSTEM, ...USER_DROP_INS, 'etc/registries.conf.d/0.conf.bak');
    await mkdir(at('etc/registries.conf.d/folder.conf'));
    expect(await filesOf()).toEqual([...SYSTEM, ...USER_DROP_INS]);
  });

  it("are the user's alone if the user has a main file", async () => {
    await writeAll(...SYSTEM, ...USER, ...USER_DROP_INS);
    expect(await filesOf()).toEqual([...USER, ...USER_DROP_INS]);
  });

  it('are found below XDG_CONFIG_HOME before HOME', async () => {
    await writeAll(...SYSTEM, ...USER, ...USER_DROP_INS, ...XDG);
    expect(await filesOf({ XDG_CONFIG_HOME: at('xdg') })).toEqual(XDG);
    expect(await filesOf({ XDG_CONFIG_HOME: at('other') })).toEqual([...USER, ...USER_DROP_INS]);
  });

  it.each(['CONTAINERS_REGISTRIES_CONF', 'REGISTRIES_CONFIG_PATH'])(
    'have a main file replaced by %s, and all drop-ins',
    async (name) => {
      await writeAll(...SYSTEM, ...USER, ...USER_DROP_INS, 'mine.conf');
      const expected = ['mine.conf', ...SYSTEM.slice(1), ...USER_DROP_INS];
      expect(await filesOf({ [name]: at('mine.conf') })).toEqual(expected);
      expect(await filesOf({ [name]: 'mine.conf' })).toEqual(expected);
      expect(await filesOf({ [name]: '' })).toEqual([...USER, ...USER_DROP_INS]);
    },
  );

  it('have no main file if the environment names /dev/null', async () => {
    await writeAll(...SYSTEM, ...USER, ...USER_DROP_INS);
    const expected = [...SYSTEM.slice(1), ...USER_DROP_INS];
    expect(await filesOf({ CONTAINERS_REGISTRIES_CONF: '/dev/null' })).toEqual(expected);
  });

  it('are only the named file if the configuration names one', async () => {
    await writeAll(...SYSTEM, ...USER, ...USER_DROP_INS, 'mine.conf', 'named.conf');
    const env = { CONTAINERS_REGISTRIES_CONF: at('mine.conf') };
    expect(await filesOf(env, at('named.conf'))).toEqual(['named.conf']);
  });

  it('must exist if they are named', async () => {
    const expected = { code: 'registries-conf.missing', exitCode: 3 };
    await expect(filesOf({}, at('none'))).rejects.toMatchObject(expected);
    await expect(filesOf({ CONTAINERS_REGISTRIES_CONF: 'none' })).rejects.toMatchObject(expected);
  });

  it('are a configuration error if they cannot be read', async () => {
    await mkdir(at('folder'));
    await expect(filesOf({ CONTAINERS_REGISTRIES_CONF: 'folder' })).rejects.toMatchObject({
      code: 'registries-conf.unreadable',
    });
  });

  it('replace entries of the same prefix that were read before', async () => {
    await write('etc/registries.conf', 'main.test');
    await write('etc/registries.conf.d/1.conf', 'one.test');
    await write('etc/registries.conf.d/2.conf', 'two.test');
    const { registries } = await loadRegistriesConf(undefined, placesOf());
    expect(registries.map(({ location }) => location)).toEqual(['two.test']);
  });

  it('may have version 1 as the main file, and not as a drop-in', async () => {
    const v1 = '[registries.insecure]\nregistries = ["lab.test"]\n';
    await write('etc/registries.conf');
    await writeFile(at('etc/registries.conf'), v1);
    expect((await loadRegistriesConf(undefined, placesOf())).registries).toHaveLength(1);
    await write('etc/registries.conf.d/1.conf');
    await writeFile(at('etc/registries.conf.d/1.conf'), v1);
    await expect(filesOf()).rejects.toThrow('drop-ins need version 2');
  });
});

describe.skipIf(!requireTool('skopeo'))('skopeo and sealift, with the same files,', () => {
  const { signal } = new AbortController();
  let mirrors: readonly ScriptedRegistry[];
  beforeAll(async () => {
    mirrors = [await startScriptedRegistry(), await startScriptedRegistry()];
  });
  afterAll(async () => {
    await Promise.all(mirrors.map((mirror) => mirror.close()));
  });

  const textOf = (mirror: ScriptedRegistry | undefined): string =>
    `[[registry]]\nlocation = "origin.invalid"\n[[registry.mirror]]\nlocation = "${mirror?.host ?? ''}/copy"\ninsecure = true\n`;

  /** How often each mirror was asked for the tag. */
  const counts = (): number[] =>
    mirrors.map(({ requestsOf }) => requestsOf('/v2/copy/app/manifests/v1').length);

  /** Which mirrors were asked while this ran. */
  async function watch(work: () => Promise<unknown>): Promise<boolean[]> {
    const before = counts();
    await work();
    return counts().map((count, index) => count > (before[index] ?? 0));
  }

  it.each([
    ['the file of the user', { main: 0 }, [true, false]],
    ['the file of the user and a drop-in', { main: 0, dropIn: 1 }, [false, true]],
    ['a file that is named', { main: 0, named: 1 }, [false, true]],
    ['a file that is named and a drop-in', { named: 1, dropIn: 0 }, [true, false]],
  ])('pull from the same mirror: %s', async (_, files, expected) => {
    for (const mirror of mirrors) mirror.addManifest(imageManifest('one'), 'v1');
    const folder = 'home/.config/containers';
    await mkdir(at(`${folder}/registries.conf.d`), { recursive: true });
    const paths = {
      main: `${folder}/registries.conf`,
      dropIn: `${folder}/registries.conf.d/1.conf`,
      named: 'named.conf',
    };
    for (const [name, index] of Object.entries(files)) {
      await writeFile(at(paths[name as keyof typeof paths]), textOf(mirrors[index]));
    }
    const isNamed = 'named' in files;
    // skopeo knows the variable by an option alone; podman and buildah read both.
    const option = isNamed ? ['--registries-conf', at(paths.named)] : [];
    const bySkopeo = await watch(() =>
      runProcess('skopeo', [...option, 'inspect', '--raw', 'docker://origin.invalid/app:v1'], {
        env: { ...process.env, HOME: at('home') },
      }),
    );
    const named = isNamed ? { CONTAINERS_REGISTRIES_CONF: at(paths.named) } : {};
    const client = createTestClient({
      registriesConf: await loadRegistriesConf(undefined, placesOf(named)),
    });
    const bySealift = await watch(() =>
      client.fetchManifest(parseReference('origin.invalid/app:v1'), { signal }),
    );
    await client.close();
    expect(bySkopeo).toEqual(expected);
    expect(bySealift).toEqual(bySkopeo);
  });
});
