import { once } from 'node:events';
import { copyFile, mkdir, mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { InterruptedError } from '../../../src/base/errors.ts';
import { runProcess } from '../../../src/base/process.ts';
import { registerRegistry } from '../../../src/cli/serve/registry.ts';
import { openIso } from '../../../src/iso/read/open.ts';
import { blobPath, makeMedium, type TestMedium } from '../../support/medium.ts';
import { runCommand, startCommand, type CommandRun } from '../../support/run-command.ts';
import { makeTinyIso } from '../../support/tiny-iso.ts';
import { requireTool } from '../../support/tools.ts';

const hasSkopeo = requireTool('skopeo');
const hasOpenssl = requireTool('openssl');

let directory: string;
let medium: TestMedium;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sealift-serve-'));
  medium = await makeMedium(directory);
});
afterAll(() => rm(directory, { recursive: true, force: true }));

type Server = CommandRun & { readonly where: string; readonly stop: () => Promise<number> };

/** Serves an ISO on a free port until `stop`. */
async function serve(path: string, ...options: readonly string[]): Promise<Server> {
  const stop = new AbortController();
  const args = ['registry', 'serve', path, '--port', '0', ...options];
  const run = startCommand(registerRegistry, args, { cwd: directory, signal: stop.signal });
  const where = await vi.waitUntil(() => /https?:\/\/([^\s;"]+)/.exec(run.stderr())?.[1], {
    timeout: 20_000,
    interval: 10,
  });
  return {
    ...run,
    where,
    stop() {
      stop.abort(new InterruptedError('SIGTERM'));
      return run.exitCode;
    },
  };
}

/** Ends at once with an error. */
const refuse = (...args: readonly string[]): ReturnType<typeof runCommand> =>
  runCommand(registerRegistry, ['registry', 'serve', ...args], { cwd: directory });

describe('a registry that is served from an ISO', () => {
  it('names a repository of this medium as an example, and ends on a signal', async () => {
    const server = await serve(medium.path);
    expect(server.stderr()).toMatch(
      /^try: skopeo list-tags --tls-verify=false docker:\/\/127\.0\.0\.1:\d+\/openshift\/release$/m,
    );
    expect(await server.stop()).toBe(143);
  });

  it.skipIf(!hasSkopeo)('prints an example that works', async () => {
    const server = await serve(medium.path);
    const [, ...args] = /^try: skopeo (.*)$/m.exec(server.stderr()) ?? [];
    const { stdout } = await runProcess('skopeo', args.join(' ').split(' '));
    expect(JSON.parse(stdout)).toMatchObject({ Tags: ['cli', 'etcd'] });
    await server.stop();
  });

  it('reports its address and the requests as JSON', async () => {
    const server = await serve(medium.path, '--log-format', 'json', '--verbose');
    await fetch(`http://${server.where}/v2/?access_token=secret-word`);
    await vi.waitUntil(() => server.stderr().includes('"request"'));
    const lines = server.stderr().trim().split('\n');
    expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
      {
        type: 'serving',
        url: `http://${server.where}`,
        iso: medium.path,
        example: `skopeo list-tags --tls-verify=false docker://${server.where}/openshift/release`,
      },
      { type: 'request', method: 'GET', status: 200, complete: true },
    ]);
    expect(server.stderr()).not.toContain('secret-word');
    await server.stop();
  });

  it('reports its own errors even if requests are not reported', async () => {
    const path = join(directory, 'damaged.iso');
    await copyFile(medium.path, path);
    const digest = medium.images[0]?.image.manifests[0]?.descriptor.digest ?? 'sha256:';
    const file = await open(path, 'r+');
    await file.write('damage', medium.extentOf(blobPath(digest)).offset);
    await file.close();
    const server = await serve(path);
    const url = `http://${server.where}/v2/openshift/release/manifests/${digest}`;
    expect((await fetch(url)).status).toBe(500);
    await fetch(`http://${server.where}/v2/`);
    await vi.waitUntil(() => server.stderr().includes('GET'));
    expect(server.stderr()).toMatch(/^GET \/v2\/openshift\S+ 500: manifest sha256:\S+ has bytes/m);
    expect(server.stderr().match(/^GET/gm)).toHaveLength(1);
    await server.stop();
  });

  it('serves the rest if a directory of repositories is damaged, and reports the damage', async () => {
    const path = join(directory, 'unlisted.iso');
    await copyFile(medium.path, path);
    const iso = await openIso(path);
    const node = await iso.find('/registry/docker/registry/v2/repositories/rhel9');
    await iso.close();
    if (node?.kind !== 'directory') throw new Error('no directory');
    const file = await open(path, 'r+');
    await file.write(Buffer.alloc(200, 0xff), 0, 200, node.extent.offset);
    await file.close();
    const server = await serve(path);
    await vi.waitUntil(() => server.stderr().includes('note:'));
    expect(server.stderr()).toContain('note: its repositories cannot be listed: ');
    const tags = await fetch(`http://${server.where}/v2/openshift/release/tags/list`);
    expect(await tags.json()).toMatchObject({ tags: ['cli', 'etcd'] });
    await server.stop();
  });

  it('refuses a port that another program listens on', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const { exitCode, stderr } = await refuse(medium.path, '--port', String(port));
    expect(exitCode).toBe(2);
    expect(stderr).toContain(`port ${port} of 127.0.0.1 is in use [registry.port-in-use]`);
    expect(stderr).toContain('hint: give another port');
    other.close();
  });

  it('refuses an address of another machine, and a value that is not a port', async () => {
    const { exitCode, stderr } = await refuse(medium.path, '--port', '0', '--host', '192.0.2.1');
    expect(exitCode).toBe(2);
    expect(stderr).toContain('192.0.2.1 is not an address of this machine');
    for (const port of ['65536', '-1', '1e3', '', 'http']) {
      expect((await refuse(medium.path, `--port=${port}`)).stderr).toContain('[usage.port]');
    }
  });

  it('refuses an ISO without a registry, and a missing file', async () => {
    await writeFile(join(directory, 'bare.iso'), makeTinyIso());
    expect(await refuse('bare.iso')).toMatchObject({ exitCode: 3 });
    const { exitCode, stderr } = await refuse('none.iso');
    expect(exitCode).toBe(3);
    expect(stderr).toContain('it does not exist');
  });
});

describe.skipIf(!hasOpenssl)('a registry that is served over TLS', () => {
  const at = (name: string): string => join(directory, name);
  beforeAll(async () => {
    for (const name of ['one', 'two']) {
      const kind = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
      const subject = ['-subj', `/CN=${name}`, '-addext', 'subjectAltName=IP:127.0.0.1'];
      const files = ['-keyout', at(`${name}.key`), '-out', at(`${name}.crt`)];
      await runProcess('openssl', ['req', ...kind, ...files, ...subject]);
    }
    await runProcess('openssl', [
      ...['pkey', '-in', at('one.key'), '-aes-128-cbc', '-passout', 'pass:secret-word'],
      ...['-out', at('encrypted.key')],
    ]);
    await writeFile(at('empty.pem'), '');
    const cut = (await readFile(at('one.crt'), 'utf8')).replace(/\n.{20}/, '\n');
    await writeFile(at('cut.crt'), cut);
    const chain = `${await readFile(at('one.crt'), 'utf8')}${cut}`;
    await writeFile(at('chain.crt'), chain);
  });

  it.skipIf(!hasSkopeo)('gives skopeo its images without a change', async () => {
    const server = await serve(medium.path, '--tls-cert', 'one.crt', '--tls-key', 'one.key');
    expect(server.stderr()).toMatch(/^try: skopeo list-tags docker:\/\/127/m);
    await mkdir(at('trusted'));
    await copyFile(at('one.crt'), at('trusted/ca.crt'));
    const source = `docker://${server.where}/openshift/release`;
    const trust = ['--cert-dir', at('trusted')];
    const listed = await runProcess('skopeo', ['list-tags', ...trust, source]);
    expect(JSON.parse(listed.stdout)).toMatchObject({ Tags: ['cli', 'etcd'] });
    const etcd = medium.images.find(({ name }) => name === 'etcd')?.image.manifests[0];
    const digest = etcd?.descriptor.digest ?? '';
    await runProcess('skopeo', [
      ...['copy', '-q', '--src-cert-dir', at('trusted'), '--preserve-digests'],
      ...[`${source}@${digest}`, `dir:${at('copy')}`],
    ]);
    expect(await readFile(at('copy/manifest.json'))).toEqual(Buffer.from(etcd?.bytes ?? []));
    await expect(runProcess('skopeo', ['list-tags', source])).rejects.toThrow(/certificate/);
    expect(await server.stop()).toBe(143);
  });

  const UNREADABLE = 'which cannot be read';
  it.each<[string, readonly [cert: string, key: string], string]>([
    ['a certificate that is not there', ['none.crt', 'one.key'], UNREADABLE],
    ['a key that is not there', ['one.crt', 'none.key'], UNREADABLE],
    ['a directory', ['.', 'one.key'], UNREADABLE],
    ['an empty certificate', ['empty.pem', 'one.key'], 'holds no certificate'],
    ['a certificate that lost a piece', ['cut.crt', 'one.key'], 'holds no certificate'],
    ['a chain that lost a piece', ['chain.crt', 'one.key'], 'one in its chain cannot be used'],
    ['a key for a certificate', ['one.key', 'one.key'], 'holds no certificate'],
    ['a certificate for a key', ['one.crt', 'one.crt'], 'holds no private key'],
    ['an empty key', ['one.crt', 'empty.pem'], 'holds no private key'],
    ['an encrypted key', ['one.crt', 'encrypted.key'], 'the private key is encrypted'],
    [
      'the key of another certificate',
      ['one.crt', 'two.key'],
      'does not belong to the certificate',
    ],
  ])('refuses %s', async (_what, [cert, key], problem) => {
    const call = ['--port', '0', '--tls-cert', cert, '--tls-key', key];
    const { exitCode, stderr } = await refuse(medium.path, ...call);
    expect(stderr).toContain(problem);
    expect(exitCode).toBe(problem === UNREADABLE ? 3 : 2);
    const secret = (await readFile(at('one.key'), 'utf8')).split('\n')[1] ?? '';
    expect(stderr).not.toContain(secret);
  });

  it('needs both the certificate and the key', async () => {
    const { exitCode, stderr } = await refuse(medium.path, '--tls-cert', 'one.crt');
    expect(exitCode).toBe(2);
    expect(stderr).toContain('hint: add --tls-key');
  });
});
