import { connect } from 'node:net';
import { addFigures, median, type Figures } from './figures.ts';
import { readCpu, readMemory } from '../test/support/process-tree.ts';
import type { RangeClients, Taken } from './range-clients.ts';
import { bundleBench, run, shell } from './run.ts';

/* Loads on a server of ISOs beside nginx: their turns alternate, and processor time is what judges. */

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;
const RANGE = 64 << 10;

/** A server, and one file of it. */
export type Target = { readonly url: string; readonly pid: number };

export type Pair = {
  readonly nginx: Target;
  /** Copies bytes as Node.js has to. */
  readonly copying: Target;
  readonly ours: Target;
  /** Bytes. */
  readonly size: number;
};

/** Loads, each with the processor time that it is judged by. */
const LOADS = {
  range1: { range: RANGE, clients: 1 },
  range30: { range: RANGE, clients: 30 },
  connect30: { range: RANGE, clients: 30, isEachNew: true },
  bulk8: { clients: 8 },
} as const;

type Load = keyof typeof LOADS;

/** Milliseconds of processor time for a range, or for a GiB of bulk; and ranges, or bytes, a second. */
type Measured = { readonly cpu: number; readonly rate: number };

const SECONDS = 1;
const ROUNDS = 4;

/**
 * Processor time of a range of 64 KiB and of bulk. It varies by a third between runs on a busy machine, requests a second
 * by twice that.
 */
export async function benchRanges(figures: Figures, { size, ...targets }: Pair): Promise<void> {
  const all: Record<string, Measured[]> = {};
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const load of Object.keys(LOADS) as Load[]) {
      for (const [name, target] of Object.entries(targets)) {
        (all[`${load} ${name}`] ??= []).push(await measure(target, load, size));
      }
    }
  }
  const of = (load: Load, name: keyof typeof targets, kind: keyof Measured): number =>
    median((all[`${load} ${name}`] ?? []).map((each) => each[kind]));
  for (const load of Object.keys(LOADS) as Load[]) {
    for (const name of Object.keys(targets) as (keyof typeof targets)[]) {
      const [cpu, rate] = [of(load, name, 'cpu'), of(load, name, 'rate')];
      console.log(
        `  serve: ${load} ${name}: ${cpu.toFixed(3)} ms of processor, ${rate.toFixed(0)} a second`,
      );
      figures.values[`${load} ${name}`] = { cpu, rate };
    }
  }
  addFigures(figures, {
    serveRangeCpu1: { value: of('range1', 'ours', 'cpu'), atMost: 0.055 },
    serveRangeCpu30: { value: of('range30', 'ours', 'cpu'), atMost: 0.055 },
    serveConnectCpu30: { value: of('connect30', 'ours', 'cpu'), atMost: 0.1 },
    serveBulkCpuRatio: {
      value: of('bulk8', 'ours', 'cpu') / of('bulk8', 'copying', 'cpu'),
      atMost: 1.25,
    },
    serveRangeRatio1: {
      value: of('range1', 'ours', 'rate') / of('range1', 'nginx', 'rate'),
      atLeast: 0.45,
    },
    serveRangeRatio30: {
      value: of('range30', 'ours', 'rate') / of('range30', 'nginx', 'rate'),
      atLeast: 0.4,
    },
  });
}

async function measure(target: Target, load: Load, size: number): Promise<Measured> {
  const before = readCpu(target.pid);
  const { times, bytes } = await takeRanges(target, {
    size,
    range: size,
    seconds: SECONDS,
    pause: 0,
    ...LOADS[load],
  });
  const cpu = readCpu(target.pid) - before;
  const isBulk = load === 'bulk8';
  return {
    cpu: isBulk ? cpu / (bytes / GIB) : cpu / times.length,
    rate: (isBulk ? bytes / MIB : times.length) / SECONDS,
  };
}

async function takeRanges(
  { url }: Target,
  asked: Omit<RangeClients, 'port' | 'path'>,
): Promise<Taken> {
  const { port, pathname, search } = new URL(url);
  const clients: RangeClients = { port: Number(port), path: pathname + search, ...asked };
  const script = await bundleBench('range-clients');
  const { stdout } = await run(process.execPath, [script, JSON.stringify(clients)]);
  return JSON.parse(stdout) as Taken;
}

/** Time to the first byte of a range, with 100 clients that ask ten times a second. */
export async function benchLatency(figures: Figures, { nginx, ours, size }: Pair): Promise<void> {
  const take = async (name: string, target: Target): Promise<number> => {
    const asked = { size, range: RANGE, clients: 100, seconds: 10, pause: 100 };
    const times = (await takeRanges(target, asked)).times.toSorted((a, b) => a - b);
    const at = (share: number): number => times[Math.floor(times.length * share)] ?? NaN;
    console.log(
      `  serve: first byte, ${name}: ${times.length} ranges, p50 ${at(0.5).toFixed(1)} ms, p99 ${at(0.99).toFixed(1)} ms`,
    );
    return at(0.99);
  };
  figures.values['nginxFirstByteP99'] = await take('nginx', nginx);
  addFigures(figures, { serveFirstByteP99: { value: await take('ours', ours), atMost: 10 } });
}

/** Whole downloads by curl, many at a time. */
export async function benchBulk(
  figures: Figures,
  { nginx, ours, size }: Pair,
  { runs, folder }: { readonly runs: number; readonly folder: string },
): Promise<void> {
  const download = async ({ url }: Target, count: number): Promise<number> => {
    const line = `for i in $(seq ${count}); do curl -sS --fail -o /dev/null '${url}' & done; wait`;
    const { seconds } = await shell(line, folder);
    return (count * size) / MIB / seconds;
  };
  for (const [name, count, atLeast] of [
    ['serveRatio', 30, 0.8],
    ['serveRatio8', 8, 0.85],
  ] as const) {
    const ratios: number[] = [];
    for (let index = 0; index < runs; index += 1) {
      const theirs = await download(nginx, count);
      const own = await download(ours, count);
      ratios.push(own / theirs);
      console.log(
        `  serve: ${count} downloads, nginx ${theirs.toFixed(0)} MiB/s, ours ${own.toFixed(0)} MiB/s`,
      );
    }
    addFigures(figures, { [name]: { value: median(ratios), atLeast } });
  }
}

/** Clients that ask for all of it and take what the kernel has room for; each has an address of its own. */
const STALLED = 1000;

/** Memory of all processes while many clients have stalled. */
export async function benchStalled(figures: Figures, { ours }: Pair): Promise<void> {
  const { port, pathname, search } = new URL(ours.url);
  const sockets = Array.from({ length: STALLED }, (_, index) => {
    const localAddress = `127.0.${1 + (index >> 7)}.${1 + (index & 127)}`;
    const socket = connect({ port: Number(port), host: '127.0.0.1', localAddress });
    socket.on('error', () => undefined);
    socket.write(`GET ${pathname}${search} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`);
    return socket;
  });
  await new Promise((resolve) => setTimeout(resolve, 5000));
  const open = sockets.filter(({ destroyed }) => !destroyed).length;
  const memory = readMemory(ours.pid);
  console.log(`  serve: ${open} stalled downloads, ${memory.toFixed(0)} MiB`);
  for (const socket of sockets) socket.destroy();
  addFigures(figures, { serveStalledMiB: { value: memory, atMost: 160 } });
}
