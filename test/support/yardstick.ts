import { forget, takePeak } from './peak-memory.ts';

const RECORDS = Array.from({ length: 4000 }, (_, at) => ({
  name: `record-${(at * 7919) % 4000}`,
  parts: [String(at), 'a part', at % 7],
}));

/** Work as readers of text have it: strings, objects, a sorted list, a table of names. */
function work(): number {
  const read = JSON.parse(JSON.stringify(RECORDS)) as typeof RECORDS;
  read.sort((one, other) => (one.name < other.name ? -1 : 1));
  const byName = new Map(read.map((record) => [record.name.toUpperCase(), record]));
  return byName.size;
}

/** The first runs compile it. */
const WARM_UP = 5;
for (let run = 0; run < WARM_UP; run++) work();

/** Seconds of processor time that it takes now. */
function measureWork(): number {
  const began = process.cpuUsage();
  for (let run = 0; run < 5; run++) work();
  const { user, system } = process.cpuUsage(began);
  return (user + system) / 1e6;
}

/** What work of this process cost between two calls. */
export type Effort = {
  /** Of processor time, of all threads. */
  readonly seconds: number;
  /** The same as a multiple of known work: machines, and one machine from hour to hour, differ by factors. */
  readonly effort: number;
  /** MiB, the most that the process had in memory. */
  readonly memory: number;
};

/** Begins to measure; the call that it returns ends it. */
export async function beginEffort(): Promise<() => Effort> {
  const before = measureWork();
  await forget();
  takePeak();
  const began = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(began);
    const [seconds, memory] = [(user + system) / 1e6, takePeak()];
    return { seconds, effort: seconds / Math.max(before, measureWork()), memory };
  };
}
