import { spawn, type ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runProcess } from '../../src/base/process.ts';
import { openIso } from '../../src/iso/read/open.ts';
import { type MediaIndex, readIndex } from '../../src/media/media-index.ts';
import { startSealift } from '../support/child.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { startPasswordRegistry } from '../support/password-registry.ts';
import { requireTool } from '../support/tools.ts';

const TOOLS = ['docker-registry', 'skopeo', 'htpasswd', 'openssl', 'genisoimage', 'isohybrid'];
const JUDGES = ['bsdtar', 'xorriso', 'isoinfo'];
const hasTools = [...TOOLS, ...JUDGES].map((tool) => requireTool(tool)).every(Boolean);

describe.skipIf(!hasTools)('a real registry with a private CA and passwords', () => {
  let world: LiveWorld;
  let host: string;
  let registry: ChildProcess | undefined;
  const at = (name: string): string => join(world.directory, name);

  beforeAll(async () => {
    world = await createLiveWorld();
    await mkdir(at('store'));
    await makeCertificates(world.directory);
    host = await startRegistry();
    await mirrorEverything();
    await world.registry.close(); // from here on only the real one has the images
  }, 120_000);
  afterAll(async () => {
    registry?.kill();
    await world.close().catch(() => undefined); // its registry is closed already
  });

  async function startRegistry(): Promise<string> {
    const started = await startPasswordRegistry(world.directory);
    registry = started.process;
    await waitForPort(Number(started.host.split(':')[1]));
    return started.host;
  }

  async function mirrorEverything(): Promise<void> {
    const wanted = [
      ['ocp/release', world.release.digest],
      ...Object.values(world.release.components).map((digest) => ['ocp/art-dev', digest]),
    ];
    for (const [repository = '', digest = ''] of wanted) {
      await runProcess('skopeo', [
        ...['copy', '--preserve-digests', '--src-tls-verify=false', '--dest-cert-dir', at('ca')],
        ...[
          '--dest-creds',
          'puller:hush',
          `docker://${world.registry.host}/${repository}@${digest}`,
        ],
        `docker://${host}/${repository}:${digest.slice(7, 20)}`,
      ]);
    }
  }

  async function configure(password: string): Promise<void> {
    const auth = Buffer.from(`puller:${password}`).toString('base64');
    await writeFile(at('secret.json'), JSON.stringify({ auths: { [host]: { auth } } }));
    await writeFile(
      at('registries.conf'),
      `[[registry]]\nlocation = "${world.registry.host}"\n[[registry.mirror]]\nlocation = "${host}"\n`,
    );
    await world.writeConfig(`  caBundle: ca/ca.crt`, '  registriesConf: registries.conf');
    const text = await readFile(at('appliance-config.yaml'), 'utf8');
    await writeFile(
      at('appliance-config.yaml'),
      text.replace(/^pullSecret:.*$/m, 'pullSecret: file:secret.json'),
    );
  }

  const build = () =>
    startSealift(['build', '--output', 'real.iso', '--retry-for', '1s'], { cwd: world.directory })
      .ended;

  it('refuses a wrong password, naming the credential and never its value', async () => {
    await configure('wrong-word');
    const { code, stderr, stdout } = await build();
    expect(code, stderr).toBe(4);
    expect(stderr).toContain(`pullSecret entry ${host}`);
    expect(stderr + stdout).not.toMatch(/wrong-word|cHVsbGVyOndyb25nLXdvcmQ/);
  });

  it('gives a medium whose registry serves every image unchanged', async () => {
    await configure('hush');
    const { code, stderr } = await build();
    expect(code, stderr).toBe(0);
    const index = await indexOf(at('real.iso'));
    const server = startSealift(['registry', 'serve', 'real.iso', '--port', '0'], {
      cwd: world.directory,
    });
    try {
      const where = await waitForAddress(server.process);
      for (const { repository, tags, manifests } of index.images.filter((i) => i.repository)) {
        const source = `docker://${where}/${repository}`;
        const { stdout } = await runProcess('skopeo', [
          ...['inspect', '--no-tags', '--tls-verify=false', `${source}:${tags[0] ?? ''}`],
        ]);
        expect((JSON.parse(stdout) as { Digest: string }).Digest).toBe(manifests[0]);
        await runProcess('skopeo', [
          ...['copy', '--src-tls-verify=false', '--preserve-digests'],
          ...[`${source}@${manifests[0] ?? ''}`, `dir:${at('back')}`],
        ]);
      }
    } finally {
      server.process.kill('SIGTERM');
      expect((await server.ended).code).toBe(143);
    }
  }, 120_000);

  it('gives a medium that xorriso, isoinfo and bsdtar read as sealift does, file by file', async () => {
    const index = await indexOf(at('real.iso'));
    const expected = new Map(
      index.extents.flatMap(({ paths, digest }) => paths.map((path) => [path, digest] as const)),
    );
    await mkdir(at('tree'));
    await runProcess('bsdtar', ['-xf', at('real.iso'), '-C', at('tree')]);
    const { stdout } = await runProcess('bsdtar', ['-tf', at('real.iso')]);
    const files = stdout.split('\n').filter((name) => name !== '' && expected.has(`/${name}`));
    expect(files.length).toBe(expected.size);
    for (const name of files) {
      const digest = expected.get(`/${name}`);
      if (digest === undefined) continue; // the index itself
      const bytes = await readFile(join(at('tree'), name));
      expect(`sha256:${createHash('sha256').update(bytes).digest('hex')}`, name).toBe(digest);
    }
    const isoinfo = await runProcess('isoinfo', ['-R', '-f', '-i', at('real.iso')]);
    const listed = new Set(isoinfo.stdout.split('\n'));
    const xorriso = await runProcess('xorriso', [...['-indev', at('real.iso'), '-find', '/']]);
    const found = new Set(xorriso.stdout.split('\n').map((line) => line.replace(/^'(.*)'$/, '$1')));
    for (const path of expected.keys()) {
      expect(listed.has(path), `isoinfo ${path}`).toBe(true);
      expect(found.has(path), `xorriso ${path}`).toBe(true);
    }
  });
});

async function indexOf(path: string): Promise<MediaIndex> {
  const iso = await openIso(path);
  try {
    const index = await readIndex(iso);
    if (!index) throw new Error(`${path} has no index`);
    return index;
  } finally {
    await iso.close();
  }
}

/** A CA of its own, and a certificate it signed for localhost. */
async function makeCertificates(directory: string): Promise<void> {
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  const openssl = (...args: string[]) => runProcess('openssl', args, { cwd: directory });
  await mkdir(join(directory, 'ca'));
  await openssl(
    'req',
    '-x509',
    ...key,
    '-keyout',
    'ca.key',
    '-out',
    'ca/ca.crt',
    '-subj',
    '/CN=ca',
  );
  await writeFile(join(directory, 'server.ext'), 'subjectAltName=DNS:localhost,IP:127.0.0.1\n');
  await openssl(
    'req',
    ...key,
    '-keyout',
    'server.key',
    '-out',
    'server.csr',
    '-subj',
    '/CN=server',
  );
  await openssl(
    ...['x509', '-req', '-in', 'server.csr', '-CA', 'ca/ca.crt', '-CAkey', 'ca.key'],
    ...['-CAcreateserial', '-extfile', 'server.ext', '-out', 'server.pem', '-days', '2'],
  );
}

async function waitForPort(port: number): Promise<void> {
  for (let attempt = 0; attempt < 200; attempt++) {
    const isOpen = await new Promise<boolean>((resolve) => {
      const probe = spawn('bash', ['-c', `exec 3<>/dev/tcp/127.0.0.1/${port}`], {
        stdio: 'ignore',
      });
      probe.on('close', (code) => {
        resolve(code === 0);
      });
    });
    if (isOpen) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`nothing listens on port ${port}`);
}

/** Reads on to the end: a program whose standard error is closed ends early. */
function waitForAddress(process: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let told = '';
    process.stderr?.on('data', (piece: Buffer) => {
      told += piece.toString();
      const address = /http:\/\/(\S+);/.exec(told)?.[1];
      if (address !== undefined) resolve(address);
    });
    process.on('close', () => {
      reject(new Error(`no address in: ${told}`));
    });
  });
}
