import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { startDemoWorld, type DemoWorld } from '../../../demo/world.ts';
import { runProcess } from '../../../src/base/process.ts';
import { findJudge } from '../find-judge.ts';

const ROOT = join(import.meta.dirname, '../../..');
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';

/** The machine's own authorities, for npm while the image is built. */
const TRUST = `NODE_EXTRA_CA_CERTS=${CERTIFICATES}`;
const base = findJudge('container', 'root.tar');

/** A user of group 0 whom no file of the image names, as OpenShift draws one for each namespace. */
const ANY_USER = 1_000_680_000;
const FS_GROUP = 2000;

type Container = {
  readonly image: string;
  readonly command?: readonly string[];
  readonly args: readonly string[];
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
};

type Mounts = Readonly<Record<string, string>>;
type Run = {
  readonly mounts: Mounts;
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly entrypoint?: string;
  readonly args: readonly string[];
};

let work = '';
let world: DemoWorld;
let secret = '';
let image: Image;

/** The image as `podman build` left it, and its files. */
type Image = {
  readonly root: string;
  readonly Env: readonly string[];
  readonly Entrypoint: readonly string[];
  readonly Cmd: readonly string[];
  readonly WorkingDir: string;
};

/** The registry of containers that this test has for itself. */
const podman = async (...args: readonly string[]): Promise<string> => {
  const own = ['--root', join(work, 'store'), '--runroot', join(work, 'run')];
  const { stdout } = await runProcess(
    'podman',
    [...own, '--storage-driver', 'overlay', '--cgroup-manager', 'cgroupfs', ...args],
    { timeout: 900_000, env: { ...process.env, TMPDIR: work } },
  );
  return stdout;
};

/** Runs the image as any user, with what finds the demo's world. */
async function run({ mounts, env, cwd, entrypoint, args }: Run): Promise<string> {
  const { Env, Entrypoint, Cmd, WorkingDir } = image;
  const volumes = { ...mounts, [join(work, 'world')]: join(work, 'world') };
  const command = [
    ...(entrypoint === undefined ? Entrypoint : [entrypoint]),
    ...(entrypoint === undefined && args.length === 0 ? Cmd : args),
  ];
  const { stdout } = await runProcess(
    'unshare',
    [
      ...['--mount', '--pid', '--fork', 'bash', join(import.meta.dirname, 'enter.sh')],
      ...[image.root, String(ANY_USER), String(FS_GROUP), cwd ?? WorkingDir],
      ...Object.entries(volumes).map(([from, to]) => `${from}:${to}`),
      ...['--', 'env', '-i', ...Env.filter((one) => one !== TRUST)],
      ...Object.entries({ ...world.env, ...env }).map(([name, value]) => `${name}=${value}`),
      ...command,
    ],
    { timeout: 300_000 },
  );
  return stdout;
}

/** A volume of a pod, whose group all containers have. */
function makeVolume(name: string): string {
  const folder = join(work, name);
  mkdirSync(folder);
  chownSync(folder, 0, FS_GROUP);
  chmodSync(folder, 0o2775);
  return folder;
}

describe.skipIf(base === undefined)('the container image', () => {
  beforeAll(async () => {
    work = mkdtempSync('/var/tmp/sealift-container-');
    chmodSync(work, 0o755);
    mkdirSync(join(work, 'world'));
    world = await startDemoWorld(join(work, 'world'));
    secret = await readFile(join(work, 'world/pull-secret.json'), 'utf8');
    execFileSync('chmod', ['-R', 'a+rX', join(work, 'world')]);
    await podman('import', '--change', `ENV ${TRUST}`, base ?? '', 'localhost/node:24');
    await podman(
      ...['build', '--layers=false', '--isolation', 'chroot', '--network', 'host'],
      ...[
        '--volume',
        `${CERTIFICATES}:${CERTIFICATES}:ro`,
        '--build-arg',
        'BASE=localhost/node:24',
      ],
      ...['--tag', 'localhost/sealift', ROOT],
    );
    const config = await podman(
      ...['image', 'inspect', '--format', '{{json .Config}}', 'localhost/sealift'],
    );
    const root = (await podman('image', 'mount', 'localhost/sealift')).trim();
    image = { ...(JSON.parse(config) as Image), root };
  }, 1_200_000);
  afterAll(async () => {
    await world.close();
    await podman('image', 'unmount', 'localhost/sealift');
    await podman('image', 'rm', '--all', '--force');
    rmSync(work, { recursive: true, force: true });
  });

  it('has sealift as its entrypoint, its help as the command, and sealift on PATH', async () => {
    const nothing = { mounts: {}, env: {} };
    expect(await run({ ...nothing, args: [] })).toContain('Usage: sealift');
    const script = ['-c', 'command -v sealift && exec sealift --version'];
    expect(await run({ ...nothing, entrypoint: '/bin/sh', args: script })).toMatch(
      /^\/usr\/local\/bin\/sealift\n\d+\.\d+\.\d+$/,
    );
  });

  it('runs the jobs of docs/fleet.md as printed', async () => {
    const objects = (await readBlocks('fleet.md', 'yaml')).flatMap((text) =>
      parseAllDocuments(text).map(
        (document) => document.toJS() as Readonly<Record<string, unknown>>,
      ),
    );
    const config = makeVolume('config');
    const { data } = objects.find(({ kind }) => kind === 'ConfigMap') as {
      data: Record<string, string>;
    };
    for (const [name, text] of Object.entries(data)) writeFileSync(join(config, name), text);
    const folders: Mounts = { config, cache: makeVolume('cache'), media: makeVolume('media') };
    const job = objects.find(({ kind }) => kind === 'Job');
    const lines = data['list']?.trim().split('\n') ?? [];
    const index = lines.indexOf('4.21.0 x86_64');
    const env = { PULL_SECRET: secret, JOB_COMPLETION_INDEX: String(index) };
    const built = await runPod(findContainer(job), folders, env);
    expect(built).toContain('4.21.0-x86_64.iso is complete');
    const mounts = { [folders['media'] ?? '']: '/media' };
    const verified = await run({ mounts, env: {}, args: ['verify', '/media/4.21.0-x86_64.iso'] });
    expect(verified).toContain('is whole');
    const cron = objects.find(({ kind }) => kind === 'CronJob') as {
      spec: { jobTemplate: object };
    };
    expect(await runPod(findContainer(cron.spec.jobTemplate), folders, {})).toMatch(/removed|kept/);
  });

  it('runs the steps of docs/ci.md for Tekton as printed', async () => {
    const [text = ''] = (await readBlocks('ci.md', 'yaml')).filter((block) =>
      block.includes('tekton.dev'),
    );
    const { spec } = parse(text) as {
      spec: { steps: readonly { readonly name: string; readonly script: string }[] };
    };
    const [source, media] = [makeVolume('source'), makeVolume('tekton-media')];
    const scripts = makeVolume('scripts');
    const shared = await readBlocks('fleet.md', 'yaml');
    const base = parseAllDocuments(shared[0] ?? '')
      .map((document) => document.toJS() as { kind: string; data?: Record<string, string> })
      .find(({ kind }) => kind === 'ConfigMap')?.data?.['base.yaml'];
    writeFileSync(join(source, 'base.yaml'), base ?? '');
    writeFileSync(join(source, 'nightly.yaml'), 'ocpRelease:\n  cpuArchitecture: x86_64\n');
    const mounts = { [source]: '/workspace/source', [media]: '/workspace/media', [scripts]: '/s' };
    const env = { PULL_SECRET: secret, VERSION: '4.21.0', MEDIA: '/workspace/media' };
    const said: string[] = [];
    for (const { name, script } of spec.steps) {
      writeFileSync(join(scripts, name), script, { mode: 0o755 });
      const step = { mounts, env, cwd: '/workspace/source', entrypoint: `/s/${name}`, args: [] };
      said.push(await run(step));
    }
    expect(said).toEqual([
      expect.stringMatching(/ (?:is|are) valid/),
      expect.stringContaining('agent-ove.x86_64.iso is complete'),
    ]);
  });
});

describe.skipIf(base === undefined)('a clean Debian with Node.js', () => {
  it('makes a verified medium with the two commands of the README', async () => {
    const root = mkdtempSync('/var/tmp/sealift-clean-');
    try {
      execFileSync('tar', ['-xf', base ?? '', '-C', root]);
      for (const name of ['checkout', 'etc/ssl/certs']) {
        mkdirSync(join(root, name), { recursive: true });
      }
      execFileSync('cp', [CERTIFICATES, join(root, CERTIFICATES)]);
      const copy = 'tar --exclude-from=.containerignore -c . | tar -x -C "$1"';
      execFileSync('sh', ['-c', copy, '', join(root, 'checkout')], { cwd: ROOT });
      const [command = ''] =
        /^npm ci && npm run demo$/m.exec(await readFile(join(ROOT, 'README.md'), 'utf8')) ?? [];
      const began = performance.now();
      const { stdout } = await runProcess(
        'unshare',
        [
          ...['--mount', '--pid', '--fork', 'bash', join(import.meta.dirname, 'enter.sh')],
          ...[root, '0', '0', '/checkout', '--', 'env', '-i', 'HOME=/root'],
          ...['PATH=/usr/local/bin:/usr/bin:/bin', `NODE_EXTRA_CA_CERTS=${CERTIFICATES}`],
          ...['sh', '-ec', command],
        ],
        { timeout: 600_000 },
      );
      console.log(`${command}: ${((performance.now() - began) / 1000).toFixed(0)} s`);
      expect(stdout).toContain('live.iso is whole');
    } finally {
      rmSync(root, { recursive: true, force: true });
    }
  }, 700_000);
});

function runPod(
  { command = [], args, volumeMounts }: Container,
  folders: Mounts,
  env: Readonly<Record<string, string>>,
): Promise<string> {
  const mounts = Object.fromEntries(
    volumeMounts.map(({ name, mountPath }) => [folders[name] ?? '', mountPath]),
  );
  const [entrypoint, ...first] = command;
  return run({ mounts, env, ...(entrypoint && { entrypoint }), args: [...first, ...args] });
}

function findContainer(job: unknown): Container {
  const { spec } = job as {
    spec: { template: { spec: { containers: readonly Container[] } } };
  };
  const [container] = spec.template.spec.containers;
  if (container === undefined) throw new Error('a job without a container');
  return container;
}

const readBlocks = async (name: string, language: string): Promise<readonly string[]> =>
  [
    ...(await readFile(join(ROOT, 'docs', name), 'utf8')).matchAll(/^```(\w+)\n([^]*?)^```/gm),
  ].flatMap(([, kind, text = '']) => (kind === language ? [text] : []));
