import { once } from 'node:events';
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { connect as connectPlain, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { connect } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { InterruptedError } from '../../src/base/errors.ts';
import { runProcess } from '../../src/base/process.ts';
import { registerServe } from '../../src/cli/serve/serve.ts';
import { openTls } from '../../src/cli/serve/listen.ts';
import type { App } from '../../src/service/context.ts';
import { createServiceServer } from '../../src/service/server.ts';
import { runCommand, startCommand, type CommandRun } from '../support/run-command.ts';
import { requireTool } from '../support/tools.ts';

const hasTools = ['openssl', 'curl'].map(requireTool).every(Boolean);

describe.skipIf(!hasTools)('the service over TLS', () => {
  let directory: string;
  let run: CommandRun;
  let where: string;
  const stop = new AbortController();
  const at = (name: string): string => join(directory, name);
  const listen = ['--listen', '127.0.0.1:0', '--data', 'data', '--key', 'file:serve.key'];
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'sealift-tls-'));
    for (const name of ['one', 'two']) {
      const kind = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
      const subject = ['-subj', `/CN=${name}`, '-addext', 'subjectAltName=IP:127.0.0.1'];
      const files = ['-keyout', at(`${name}.key`), '-out', at(`${name}.crt`)];
      await runProcess('openssl', ['req', ...kind, ...files, ...subject]);
    }
    await writeFile(at('serve.key'), 'k'.repeat(40));
    await put('one.crt', 'tls.crt');
    await put('one.key', 'tls.key');
    const tls = ['--tls-cert', 'tls.crt', '--tls-key', 'tls.key'];
    const { signal } = stop;
    const line = ['serve', ...listen, ...tls, '--listen-http', '127.0.0.1:0'];
    run = startCommand(registerServe, line, { cwd: directory, signal });
    where = await vi.waitUntil(() => /serving on https:\/\/([^\s;]+)/.exec(run.stderr())?.[1], {
      timeout: 30_000,
    });
  });
  afterAll(async () => {
    stop.abort(new InterruptedError('SIGTERM'));
    expect(await run.exitCode).toBe(143);
    await rm(directory, { recursive: true });
  });

  /** As an agent that renews certificates does. */
  const put = async (from: string, to: string): Promise<void> => {
    await writeFile(at('aside'), await readFile(at(from)));
    await rename(at('aside'), at(to));
  };
  const connectBy = async (...args: string[]): Promise<string> => {
    const words = ['s_client', '-connect', where, '-brief', ...args];
    const { stdout, stderr } = await runProcess('openssl', words);
    return stdout + stderr;
  };

  it('is trusted by curl with only its certificate, and speaks no old protocol', async () => {
    const get = (ca: string) =>
      runProcess('curl', ['-sS', '--cacert', at(ca), `https://${where}/live`]);
    expect((await get('one.crt')).stdout).toContain('ok');
    await expect(get('two.crt')).rejects.toThrow();
    expect(await connectBy('-CAfile', at('one.crt'))).toMatch(/TLSv1\.3[^]*Verification: OK/);
    await expect(connectBy('-tls1_1', '-cipher', 'ALL:@SECLEVEL=0')).rejects.toThrow();
  });

  it('serves images without TLS on a second address, and nothing that is signed in for', async () => {
    const plain = await vi.waitUntil(
      () => /serving on (http:\/\/[^\s;]+)/.exec(run.stderr())?.[1] ?? '',
      { timeout: 30_000 },
    );
    const ask = async (path: string): Promise<readonly [number, string]> => {
      const answer = await fetch(plain + path);
      return [answer.status, await answer.text()];
    };
    expect(await ask('/live')).toEqual([200, '{"status":"ok"}']);
    expect(await ask('/')).toEqual([200, expect.stringContaining('Images are handed out here')]);
    // There is no such image; that it is looked for is enough.
    expect((await ask('/i/36EUK6xVjm6ODP3kWXllMOrMfmLY0HLf/1/edge.iso'))[0]).toBe(503);
    for (const path of ['/api/assisted-install/v2/clusters', '/metrics', '/page/page.js']) {
      expect(await ask(path)).toEqual([403, expect.stringContaining('use the https:// address')]);
    }
    const line = ['serve', ...listen, '--listen-http', '127.0.0.1:0'];
    const refused = await runCommand(registerServe, line, { cwd: directory });
    expect([refused.exitCode, refused.stderr]).toEqual([
      2,
      expect.stringContaining('[usage.listen-http]'),
    ]);
  });

  it('uses a renewed certificate without a restart and without dropping connections', async () => {
    const [host, port] = where.split(':');
    const socket = connect({ host, port: Number(port), ca: await readFile(at('one.crt')) });
    await once(socket, 'secureConnect');
    socket.write('GET /live HTTP/1.1\r\nHost: localhost\r\n');
    await put('two.key', 'tls.key');
    await vi.waitUntil(() => /the certificate is not renewed: [^\n]*key/.test(run.stderr()), {
      timeout: 20_000,
    });
    expect(await connectBy('-CAfile', at('one.crt'))).toContain('Verification: OK');
    await put('two.crt', 'tls.crt');
    await vi.waitUntil(
      async () => (await connectBy('-CAfile', at('two.crt'))).includes('Verification: OK'),
      {
        timeout: 20_000,
        interval: 300,
      },
    );
    socket.write('Connection: close\r\n\r\n');
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 200 /);
    const secret = (await readFile(at('two.key'), 'utf8')).split('\n')[1] ?? '';
    expect(run.stderr()).not.toContain(secret);
  });

  it('closes a connection whose handshake takes too long, without a plain-text answer', async () => {
    const [cert, key] = await Promise.all(
      ['one.crt', 'one.key'].map((name) => readFile(at(name), 'utf8')),
    );
    const limits = { connections: 9, request: 9000, idle: 9000, stalled: 9000, slow: 9000 };
    const app = { fetch: () => new Response('never') } as unknown as App;
    const { server } = createServiceServer(
      {
        app,
        answerKnown: (_request, _response, routes) => {
          routes();
        },
      },
      {
        tls: { cert: cert ?? '', key: key ?? '' },
        limits: { ...limits, head: 200 },
      },
    );
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    const socket = connectPlain(port, '127.0.0.1');
    expect(await text(socket)).toBe('');
    const early = connect({ port, host: '127.0.0.1', rejectUnauthorized: false });
    await once(early, 'secureConnect');
    early.write('no HTTP\r\n\r\n');
    expect(await text(early)).toMatch(/^HTTP\/1\.1 400 /);
    await new Promise((resolve) => server.close(resolve));
  }, 8000);

  it('uses a certificate that was renewed while it started', async () => {
    const [tlsCert, tlsKey] = ['early.crt', 'early.key'];
    await put('one.crt', tlsCert);
    await put('one.key', tlsKey);
    const { watch, pair } = openTls({ tlsCert, tlsKey }, { cwd: directory });
    expect(pair?.cert).toBe(await readFile(at('one.crt'), 'utf8'));
    await put('two.crt', tlsCert);
    await put('two.key', tlsKey);
    const used: string[] = [];
    watch({ use: ({ cert }) => used.push(cert), warn: (message) => used.push(message) })();
    expect(used).toEqual([await readFile(at('two.crt'), 'utf8')]);
  });

  it.each([
    ['one.crt', 'two.key', 2, 'registry.tls-mismatch'],
    ['one.crt', 'none.key', 3, 'input.missing'],
    ['none.crt', 'one.key', 3, 'input.missing'],
    ['one.key', 'one.key', 2, 'registry.tls-certificate'],
  ])('does not start with %s and %s', async (...row) => {
    const [cert, key, code, reason] = row;
    const line = ['serve', ...listen, '--tls-cert', cert, '--tls-key', key];
    const { exitCode, stderr } = await runCommand(registerServe, line, { cwd: directory });
    expect([exitCode, stderr]).toEqual([code, expect.stringContaining(`[${reason}]`)]);
  });
});
