import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { addFigures, median, type Figures } from './figures.ts';
import { bundleBench, run, shell } from './run.ts';

const MIB = 1024 ** 2;
const RELEASES = 10;
const CUSTOMISATIONS = 500;
const CLIENTS = 100;
const SECONDS = 10;
/** Of a client between two ranges, in milliseconds. */
const PAUSE = 100;
const DOWNLOADS = 30;
/** As many as nginx has. */
const WORKERS = 2;

type Sized = { readonly directory: string; readonly base: string; readonly runs: number };
type Server = {
  readonly port: number;
  readonly stop: () => Promise<void>;
};

/**
 * Customised ISOs of ten releases, beside nginx that serves one of them as a file. Both have two processes, and
 * their turns alternate.
 */
export async function benchServe(
  figures: Figures,
  { directory, base, runs }: Sized,
): Promise<void> {
  const folder = join(directory, 'serve');
  mkdirSync(join(folder, 'files'), { recursive: true });
  const paths = Array.from({ length: RELEASES }, (_, index) => makeRelease(folder, base, index));
  const [large = ''] = paths;
  const { size } = statSync(large);
  const nginx = await startJudge(folder);
  const server = await startServer(folder, paths);
  try {
    await benchLatency({ nginx, server, figures, size });
    await benchBulk({ nginx, server, figures, size, runs, folder });
    await benchCustomisations({ server, figures, folder });
    figures.values['servePeakMiB'] = peak;
    addFigures(figures, { serveMemoryMiB: { value: peak, atMost: 250 } });
  } finally {
    await server.stop();
    await nginx.stop();
  }
}

/** The first is large enough to be downloaded; the others have their own bytes. */
function makeRelease(folder: string, base: string, index: number): string {
  const path = join(folder, 'files', `${index}.iso`);
  copyFileSync(base, path);
  if (index === 0) {
    const piece = Buffer.alloc(MIB);
    for (let count = 0; count < 256; count += 1) appendFileSync(path, piece.fill(count));
  } else truncateSync(path, statSync(path).size + index * 2048);
  return path;
}

type Judge = { readonly port: number; readonly stop: () => Promise<void> };

/** Debian's nginx as it is made fast: sendfile, and a process for each processor of a small machine. */
async function startJudge(folder: string): Promise<Judge> {
  const port = 18_980;
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (kind) => `${kind}_temp_path ${folder}/${kind};`,
  );
  const lines = [
    `daemon off; worker_processes ${WORKERS}; error_log stderr error; pid ${folder}/nginx.pid;`,
    'events { worker_connections 4096; }',
    `http { access_log off; sendfile on; tcp_nopush on; ${temporary.join(' ')}`,
    `server { listen 127.0.0.1:${port} reuseport; root ${folder}/files; } }`,
  ];
  writeFileSync(join(folder, 'nginx.conf'), lines.join('\n'));
  const child = spawn('nginx', ['-p', folder, '-c', join(folder, 'nginx.conf')], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { PATH: `${process.env['PATH'] ?? ''}:/usr/sbin` },
  });
  await shell(`curl -sS --retry 50 --retry-connrefused -I http://127.0.0.1:${port}/0.iso`, folder);
  return { port, stop: () => end(child) };
}

async function end(child: ChildProcess): Promise<void> {
  const closed = once(child, 'close');
  child.kill('SIGTERM');
  await closed;
}

let peak = 0;

async function startServer(folder: string, paths: readonly string[]): Promise<Server> {
  const script = await bundleBench('virtual-server');
  const child = spawn(process.execPath, [script, folder, String(WORKERS), ...paths], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  /** Of all processes: what is theirs, and their part of what they share, in MiB. */
  const readMemory = (): number => {
    const list = `/proc/${child.pid ?? 0}/task/${child.pid ?? 0}/children`;
    const pids = [child.pid, ...readFileSync(list, 'latin1').trim().split(' ')];
    const sizes = pids.map((pid) => readFileSync(`/proc/${pid ?? 0}/smaps_rollup`, 'latin1'));
    return sizes.reduce((sum, text) => sum + Number(/^Pss:\s+(\d+)/m.exec(text)?.[1]) / 1024, 0);
  };
  const timer = setInterval(() => {
    peak = Math.max(peak, readMemory());
  }, 250);
  return {
    port: Number.parseInt(line.toString(), 10),
    async stop() {
      clearInterval(timer);
      await end(child);
    },
  };
}

type Pair = {
  readonly nginx: Judge;
  readonly server: Server;
  readonly figures: Figures;
  /** Bytes of what both serve. */
  readonly size: number;
};

async function benchLatency({ nginx, server, figures, size }: Pair): Promise<void> {
  const script = await bundleBench('range-clients');
  const measure = async (port: number, path: string): Promise<number[]> => {
    const args = [port, path, size, CLIENTS, SECONDS, PAUSE].map(String);
    const { stdout } = await run(process.execPath, [script, ...args]);
    return (JSON.parse(stdout) as number[]).sort((a, b) => a - b);
  };
  const theirs = await measure(nginx.port, '/0.iso');
  const ours = await measure(server.port, '/0/warm.iso');
  for (const [name, times] of [
    ['nginx', theirs],
    ['ours', ours],
  ] as const) {
    const at = (share: number): string =>
      (times[Math.floor(times.length * share)] ?? NaN).toFixed(1);
    console.log(
      `  serve: first byte, ${name}: ${times.length} ranges, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`,
    );
  }
  const p99 = (times: readonly number[]): number => times[Math.floor(times.length * 0.99)] ?? NaN;
  figures.values['nginxFirstByteP99'] = p99(theirs);
  addFigures(figures, { serveFirstByteP99: { value: p99(ours), atMost: 20 } });
}

async function benchBulk({
  nginx,
  server,
  figures,
  size,
  runs,
  folder,
}: Pair & { readonly runs: number; readonly folder: string }): Promise<void> {
  const download = async (url: string): Promise<number> => {
    const line = `for i in $(seq ${DOWNLOADS}); do curl -sS -o /dev/null ${url} & done; wait`;
    const { seconds } = await shell(line, folder);
    return (DOWNLOADS * size) / MIB / seconds;
  };
  const ratios: number[] = [];
  for (let index = 0; index < runs; index += 1) {
    const theirs = await download(`http://127.0.0.1:${nginx.port}/0.iso`);
    const ours = await download(`http://127.0.0.1:${server.port}/0/warm.iso`);
    ratios.push(ours / theirs);
    console.log(
      `  serve: ${DOWNLOADS} downloads, nginx ${theirs.toFixed(0)} MiB/s, ours ${ours.toFixed(0)} MiB/s`,
    );
  }
  addFigures(figures, { serveRatio: { value: median(ratios), atLeast: 0.8 } });
}

/** Every customer asks for the beginning of their ISO: all that is written must be overlays. */
async function benchCustomisations({
  server,
  figures,
  folder,
}: {
  readonly server: Server;
  readonly figures: Figures;
  readonly folder: string;
}): Promise<void> {
  const isos = readFolder(join(folder, 'files'));
  for (let release = 0; release < RELEASES; release += 1) {
    const url = `http://127.0.0.1:${server.port}/${release}/customer[1-${CUSTOMISATIONS}].iso`;
    await shell(`curl -sS --fail -r 4194304-4259839 '${url}' -o /dev/null`, folder);
  }
  const overlays = readFolder(join(folder, 'overlays'));
  const others = readdirSync(folder)
    .filter((name) => name.startsWith('parts-'))
    .map((name) => readFolder(join(folder, name)).bytes);
  const written = readFolder(join(folder, 'files')).bytes - isos.bytes;
  console.log(
    `  serve: ${RELEASES * CUSTOMISATIONS} customisations of ${(isos.bytes / MIB).toFixed(0)} MiB of ISOs: ${overlays.count} overlays, ${(overlays.bytes / overlays.count / 1024).toFixed(1)} KiB each`,
  );
  figures.values['overlayBytes'] = overlays.bytes;
  const isoBytes = others.reduce((sum, bytes) => sum + bytes, written);
  addFigures(figures, { serveIsoBytesWritten: { value: isoBytes, atMost: 0 } });
}

function readFolder(folder: string): { readonly count: number; readonly bytes: number } {
  const names = readdirSync(folder);
  const sizes = names.map((name) => statSync(join(folder, name)).blocks * 512);
  return { count: names.length, bytes: sizes.reduce((sum, size) => sum + size, 0) };
}
