import { existsSync } from 'node:fs';
import {
  copyFile,
  cp,
  mkdir,
  mkdtemp,
  readdir,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRedaction } from '../../src/base/text/redact.ts';
import { runProcess } from '../../src/base/process.ts';
import { decodeFileContent, parseIgnition } from '../../src/ignition/index.ts';
import { runProgram } from '../../src/cli/program.ts';
import { requireTool } from '../support/tools.ts';

const redaction = createRedaction();

/** Workspaces that a real oc-mirror wrote, run after run. */
const RECORDED = '../shared/data/judged/oc-mirror';

/** Images that oc-mirror itself reported as missing. */
const MISSING = [
  'mtv-operator-bundle@sha256:03bece32dfc239692948fe3631ba7ccda3ce3927121fe9555ef7159bb1b6568e',
  'mtv-virt-v2v-rhel10@sha256:c8704cd1d1aa02aef900bcee8403107f457c15156081e451ec5a92975a899f3a',
];

describe.skipIf(!existsSync(RECORDED))('a workspace of the real oc-mirror', () => {
  let directory: string;
  beforeAll(async () => {
    requireTool('zstd');
    directory = await mkdtemp(join(tmpdir(), 'sealift-workspaces-'));
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  async function unpack(name: string): Promise<string> {
    const cwd = await mkdtemp(join(directory, `${name}-`));
    await runProcess('tar', ['--zstd', '-xf', resolve(RECORDED, `${name}.tar.zst`), '-C', cwd]);
    return cwd;
  }

  /** Runs a command for a live ISO in a folder with a mirror, without a network. */
  async function run(cwd: string, ...args: string[]) {
    const lines = [
      'apiVersion: v1beta1\nkind: ApplianceConfig\nocpRelease:\n  version: "4.21.7"\nmirrorPath: mirror',
      `build:\n  signatureKeys: ${resolve(RECORDED, 'release-key.asc')}\n`,
    ];
    await writeFile(join(cwd, 'appliance-config.yaml'), lines.join('\n'));
    const [stdout, stderr] = [new PassThrough(), new PassThrough()];
    const printed = [stdout, stderr].map((stream) => text(stream));
    const exitCode = await runProgram(args, {
      ...{ stdout, stderr, cwd, redaction, isTTY: false, env: { HOME: cwd }, now: Date.now },
      signal: new AbortController().signal,
    });
    stdout.end();
    stderr.end();
    const [out = '', err = ''] = await Promise.all(printed);
    return { exitCode, stdout: out, stderr: err };
  }

  const plan = async (name: string, ...args: string[]) =>
    run(await unpack(name), 'plan', 'live-iso', ...args);

  it.each(['signed', 'signed-again', 'two-runs', 'namespace'])(
    'is built without a network, and the medium is whole: %s',
    async (name) => {
      const cwd = await unpack(name);
      const { exitCode, stdout, stderr } = await run(cwd, 'build', '--output', 'mirror.iso');
      expect(stderr).not.toContain('mirror.openshift.com');
      expect(exitCode, stderr).toBe(0);
      expect(stdout).toContain('by key 4A594D0EEA8440E5E72B3004C35BF7A75BA40D17');
      const verified = await run(cwd, 'verify', 'mirror.iso');
      expect(verified.exitCode, verified.stdout).toBe(0);
    },
    120_000,
  );

  it('is refused with every missing image named, and what oc-mirror said of it', async () => {
    const refused = await plan('partial');
    expect(refused.exitCode).toBe(5);
    expect(refused.stderr).toContain('[mirror.incomplete]');
    for (const image of MISSING) expect(refused.stderr).toContain(image);
    expect(refused.stderr).toContain('because one of its related images failed to mirror');
    const allowed = await plan('partial', '--allow-incomplete');
    expect(allowed.exitCode).toBe(0);
    for (const image of MISSING) expect(allowed.stderr).toContain(image);
  });

  it('has the resources of its medium, also where no medium can be built', async () => {
    const cwd = await unpack('signed');
    const names = ['--set', 'useDefaultSourceNames=true'];
    const { exitCode, stderr } = await run(cwd, 'build', '--output', 'mirror.iso', ...names);
    expect(exitCode, stderr).toBe(0);
    const onMedium = await readManifests(cwd);
    await removeLargest(join(cwd, 'mirror/data/docker/registry/v2/blobs'));
    const broken = await run(cwd, 'plan', 'live-iso', ...names);
    expect(broken.stderr).toContain('[workspace.blobs-missing]');
    const small = ['--set', 'build.maxSize=1MiB'];
    const resources = await run(cwd, 'resources', ...names, ...small);
    expect(resources.exitCode, resources.stderr).toBe(0);
    expect(onMedium.join('')).toContain('name: redhat-operators\n');
    for (const text of onMedium) expect(resources.stdout).toContain(text);
    expect(resources.stdout).toContain('kind: ClusterCatalog');
  }, 120_000);

  /** The manifests for the cluster on a medium. */
  async function readManifests(cwd: string): Promise<string[]> {
    const { stdout } = await run(cwd, 'ignition', 'show', '--bootstrap', 'mirror.iso');
    const { storage } = parseIgnition(stdout, 'bootstrap config');
    return (storage?.files ?? [])
      .filter(({ path }) => path.includes('/extra-manifests/'))
      .map((file) => decodeFileContent(file)?.toString('utf8') ?? '');
  }

  describe('in archives of mirrorToDisk', () => {
    it('is read in place, and the medium is whole', async () => {
      const cwd = await unpack('signed');
      await pack(cwd, ['one']);
      await rename(join(cwd, 'archives/one'), join(cwd, 'mirror'));
      const { exitCode, stderr } = await run(cwd, 'build', '--output', 'mirror.iso');
      expect(exitCode, stderr).toBe(0);
      const verified = await run(cwd, 'verify', 'mirror.iso');
      expect(verified.exitCode, verified.stdout).toBe(0);
      const texts = (await readManifests(cwd)).join('\n');
      expect(texts).toContain(
        'registry.appliance.openshift.com:22625/redhat/redhat-operator-index:v4.21',
      );
      expect(texts).toContain('source: registry.redhat.io/migration-toolkit-virtualization');
      expect(texts).toContain('source: registry.redhat.io/rhel9');
    }, 120_000);

    it('is whole if the archives of all runs are given, each run in its folder', async () => {
      const cwd = await unpack('signed');
      await pack(cwd, ['first', 'second']);
      await rename(join(cwd, 'archives'), join(cwd, 'mirror'));
      const whole = await run(cwd, 'plan', 'live-iso');
      expect(whole.exitCode, whole.stderr).toBe(0);
      await rm(join(cwd, 'mirror/first'), { recursive: true });
      const partial = await run(cwd, 'plan', 'live-iso');
      expect(partial.exitCode).not.toBe(0);
      expect(partial.stderr).toContain('add the archives of earlier runs');
    }, 120_000);

    it.each([
      ['mirror_000001.tar', 'no mirror_000001.tar'],
      ['mirror_000002.tar', 'no isc_*'],
    ])('is refused without one of the archives of a run: %s', async (name, problem) => {
      const cwd = await unpack('signed');
      await pack(cwd, ['one']);
      await rename(join(cwd, 'archives/one'), join(cwd, 'mirror'));
      await rm(join(cwd, 'mirror', name));
      const { exitCode, stderr } = await run(cwd, 'plan', 'live-iso');
      expect(exitCode).toBe(3);
      expect(stderr).toContain(problem);
    });
  });
});

/** Removes the largest file below a folder. */
async function removeLargest(folder: string): Promise<void> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name));
  const sizes = await Promise.all(
    files.map(async (path) => ({ path, size: (await stat(path)).size })),
  );
  const [largest] = sizes.sort((a, b) => b.size - a.size);
  await rm(largest?.path ?? '');
}

/** Catalog whose image of origin mirrorToDisk keeps beside the filtered one. */
const CATALOG = 'docker/registry/v2/repositories/redhat/redhat-operator-index/_manifests';
const ORIGIN = '2d24b52c2aa0b95138a2920cdc6a83f96964dcf1af58514754bc9791a896bdfa';
const FILTER = 'e0dd56860695bd413c984ec174341a49';

/**
 * Packs a workspace in the form of mirrorToDisk (oc-mirror, internal/pkg/archive): all links, the blobs
 * that no earlier run has, working-dir without resources, the configuration; in two archives a run.
 */
async function pack(cwd: string, runs: readonly string[]): Promise<void> {
  const root = join(cwd, 'root');
  await rename(join(cwd, 'mirror/data'), root);
  await rename(join(cwd, 'mirror/working-dir'), join(root, 'working-dir'));
  await rm(join(cwd, 'mirror'), { recursive: true });
  await rm(join(root, 'working-dir/cluster-resources'), { recursive: true });
  await cp(join(root, CATALOG, 'tags/v4.21'), join(root, CATALOG, `tags/${FILTER}`), {
    recursive: true,
  });
  await mkdir(join(root, CATALOG, `revisions/sha256/${ORIGIN}`));
  for (const link of [`revisions/sha256/${ORIGIN}/link`, 'tags/v4.21/current/link'])
    await writeFile(join(root, CATALOG, link), `sha256:${ORIGIN}`);
  const files = await readdir(root, { recursive: true, withFileTypes: true });
  const all = files
    .filter((file) => file.isFile())
    .map(({ parentPath, name }) => relative(root, join(parentPath, name)))
    .sort();
  const links = all.filter((path) => path.includes('/repositories/'));
  const blobs = all.filter((path) => path.includes('/blobs/'));
  const others = all.filter((path) => path.startsWith('working-dir/'));
  for (const [at, run] of runs.entries()) {
    const folder = join(cwd, 'archives', run);
    await mkdir(folder, { recursive: true });
    const isc = `isc_2026-11-25T0${at}:00:00Z`;
    await copyFile(resolve(RECORDED, 'imageset-all.yaml'), join(root, isc));
    const own = blobs.filter((_, index) => index % runs.length === at);
    const half = Math.ceil(own.length / 2);
    const parts = [
      [...links, ...own.slice(0, half)],
      [...own.slice(half), ...others, isc],
    ];
    for (const [part, names] of parts.entries()) {
      await writeFile(join(cwd, 'names'), names.join('\n'));
      const archive = join(folder, `mirror_00000${part + 1}.tar`);
      const format = `--format=${part === 0 ? 'pax' : 'gnu'}`;
      await runProcess('tar', [format, '-cf', archive, '-C', root, '-T', join(cwd, 'names')]);
    }
  }
}
