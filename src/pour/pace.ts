import { cpus } from 'node:os';

/**
 * The number of lanes that pour at a time. More lanes help while a remote source is slow; when this machine has
 * no processor time left, they only hold half-read connections, whose bytes a kill would lose. So one lane
 * begins, and more join while processors are idle.
 */
export type Pace = {
  /**
   * Lanes that may pour now, at least 1.
   *
   * @param wasShort true if lanes waited for buffers since the last call: more lanes would wait, too
   */
  readonly allow: (wasShort: () => boolean) => number;
};

const SAMPLE_MS = 200;
/** Shares of idle processor time: above IDLE lanes join, below BUSY one leaves. */
const IDLE = 0.5;
const BUSY = 0.3;

export type PaceMeters = {
  /** Share of the processors' time, since the last call, in which they were idle. */
  readonly readIdle?: () => number;
  /** Milliseconds. */
  readonly now?: () => number;
};

/** Looks at the processors at most once in 200 ms. */
export function createPace(lanes: number, meters: PaceMeters = {}): Pace {
  const { readIdle = createIdleMeter(), now = () => performance.now() } = meters;
  let allowed = 1;
  let sampledAt = now();
  readIdle();
  return {
    allow(wasShort) {
      if (now() - sampledAt < SAMPLE_MS) return allowed;
      sampledAt = now();
      const idle = readIdle();
      if (wasShort()) allowed = 1;
      else if (idle > IDLE) allowed = Math.min(lanes, allowed * 2);
      else if (idle < BUSY) allowed = Math.max(1, allowed - 1);
      return allowed;
    },
  };
}

function createIdleMeter(): () => number {
  let last = readTimes();
  return () => {
    const now = readTimes();
    const total = now.total - last.total;
    const idle = now.idle - last.idle;
    last = now;
    return total <= 0 ? 0 : idle / total;
  };
}

/** Milliseconds over all processors since boot. */
function readTimes(): { readonly idle: number; readonly total: number } {
  let idle = 0;
  let total = 0;
  for (const { times } of cpus()) {
    idle += times.idle;
    total += times.idle + times.user + times.nice + times.sys + times.irq;
  }
  return { idle, total };
}

const WINDOW_MS = 250;

/** Bytes a second over the last moments, updated every quarter of a second. */
export class PourPace {
  #started = performance.now();
  #bytes = 0;
  #rate = 0;

  add(bytes: number): void {
    this.#rotate();
    this.#bytes += bytes;
  }

  /** Bytes a second. */
  read(): number {
    this.#rotate();
    return this.#rate;
  }

  #rotate(): void {
    const elapsed = performance.now() - this.#started;
    if (elapsed < WINDOW_MS) return;
    this.#rate = (this.#bytes * 1000) / elapsed;
    this.#bytes = 0;
    this.#started += elapsed;
  }
}
