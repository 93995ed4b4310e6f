import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { createSyslog, type Syslog } from '../../../src/service/audit/syslog.ts';
import { parseSyslogTarget } from '../../../src/service/audit/syslog-target.ts';

const entry = (event: string) => ({ event, time: '2026-11-27T21:10:20.114Z' });
const HEAD = /^<110>1 2026-11-27T21:10:20\.114Z [!-~]{1,255} sealift \d+ cluster\.create - /;

const opened: { close: () => unknown }[] = [];
afterEach(async () => {
  for (const each of opened.splice(0).reverse()) await each.close();
});

type Seen = {
  readonly lost?: number[];
  readonly warnings?: string[];
  readonly env?: NodeJS.ProcessEnv;
};

function open(target: string, { lost = [], warnings = [], env = {} }: Seen = {}): Syslog {
  const parsed = parseSyslogTarget(target);
  if (!parsed) throw new Error(target);
  const syslog = createSyslog(parsed, {
    env,
    warn: (message) => warnings.push(message),
    onLost: (count) => lost.push(count),
  });
  opened.push(syslog);
  return syslog;
}

it.each([
  ['udp://log.example.com', { kind: 'udp', host: 'log.example.com', port: 514 }],
  ['tcp://[2001:db8::1]:6514', { kind: 'tcp', host: '2001:db8::1', port: 6514 }],
  ['unix:/dev/log', { kind: 'unix', path: '/dev/log' }],
  ['unix:///dev/log', { kind: 'unix', path: '/dev/log' }],
  ['tls://log.example.com', undefined],
  ['udp://a:b@log.example.com', undefined],
  ['udp://log.example.com:70000', undefined],
  ['unix:log', undefined],
  ['', undefined],
])('the target %s is read', (text, target) => {
  expect(parseSyslogTarget(text)).toEqual(target);
});

it('sends a datagram a line, with facility, severity and event', async () => {
  const receiver = createSocket('udp4');
  receiver.bind(0, '127.0.0.1');
  await once(receiver, 'listening');
  opened.push(receiver);
  const syslog = open(`udp://127.0.0.1:${receiver.address().port}`);
  const first = once(receiver, 'message');
  syslog.send('{"a":1}\n', entry('cluster.create'));
  const text = String((await first)[0]);
  expect(text).toMatch(HEAD);
  expect(text.replace(HEAD, '')).toBe('{"a":1}');
  const second = once(receiver, 'message');
  syslog.send('{}\n', entry('request.refuse'));
  expect(String((await second)[0])).toMatch(/^<108>1 /);
});

async function listen(port = 0): Promise<{
  readonly server: Server;
  readonly port: number;
  readonly text: () => string;
  readonly cut: () => void;
}> {
  let text = '';
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('utf8');
    });
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  opened.push({
    close: () => {
      cut();
      server.close();
    },
  });
  return { server, port: (server.address() as AddressInfo).port, text: () => text, cut };
}

/** RFC 6587 3.4.1. */
function readFrames(text: string): readonly string[] {
  const frames: string[] = [];
  let rest = Buffer.from(text);
  while (rest.length > 0) {
    const blank = rest.indexOf(32);
    const size = Number(rest.subarray(0, blank).toString());
    frames.push(rest.subarray(blank + 1, blank + 1 + size).toString());
    rest = rest.subarray(blank + 1 + size);
  }
  return frames;
}

it('counts the octets of each line over TCP, and connects again when the server is back', async () => {
  const first = await listen();
  const warnings: string[] = [];
  const syslog = open(`tcp://127.0.0.1:${first.port}`, { warnings });
  for (const text of ['é', 'b']) syslog.send(`${text}\n`, entry('cluster.create'));
  await expect.poll(() => readFrames(first.text()).length).toBe(2);
  expect(readFrames(first.text()).map((frame) => frame.replace(HEAD, ''))).toEqual(['é', 'b']);
  first.server.close();
  first.cut();
  await once(first.server, 'close');
  await expect
    .poll(() => {
      syslog.send('lost, or late\n', entry('cluster.create'));
      return warnings.length;
    })
    .toBe(1);
  const second = await listen(first.port);
  syslog.send('last\n', entry('cluster.create'));
  await expect.poll(() => second.text(), { timeout: 10_000 }).toContain('last');
});

it('waits with some thousand lines at most, and counts the others', async () => {
  const first = await listen();
  const lost: number[] = [];
  first.server.close();
  await once(first.server, 'close');
  const syslog = open(`tcp://127.0.0.1:${first.port}`, { lost });
  for (let at = 0; at < 2500; at += 1) syslog.send('{}\n', entry('cluster.create'));
  expect(syslog.dropped()).toBe(500);
  const second = await listen(first.port);
  await expect.poll(() => readFrames(second.text()).length, { timeout: 10_000 }).toBe(2000);
  expect(lost).toEqual([500]);
});

it('gives lines for a socket of this machine to logger(1), by severity', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sealift-logger-'));
  opened.push({ close: () => rm(folder, { recursive: true }) });
  const script = '#!/bin/sh\necho "$@" >> "${0%/*}/given"\ncat >> "${0%/*}/given"\n';
  await writeFile(join(folder, 'logger'), script, { mode: 0o755 });
  const env = { PATH: `${folder}:${process.env['PATH'] ?? ''}` };
  const syslog = open('unix:/dev/log', { env });
  syslog.send('first\n', entry('cluster.create'));
  syslog.send('second\n', entry('request.refuse'));
  await syslog.close();
  opened.splice(opened.indexOf(syslog), 1);
  const about = '--socket /dev/log --tag sealift --id --size 32KiB --priority authpriv';
  expect(await readFile(join(folder, 'given'), 'utf8')).toBe(
    `${about}.info\nfirst\n${about}.warning\nsecond\n`,
  );
});
