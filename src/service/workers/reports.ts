import type { ServedEntry } from '../../base/http/serve-bytes.ts';
import type { KnownAnswer } from '../images/answer-known.ts';
import type { KnownImage } from '../images/known-urls.ts';
import type { Amount, ReportedAnswer, ReportedImage, WorkerReport } from './messages.ts';

/* Owns the reports of workers: answers since the last one, and how much clients have of a worker. */

export type WorkerAnswer = KnownAnswer & WorkerReading;

/** A client with an answer in progress. */
export type WorkerReading = { readonly image: ReportedImage; readonly address: string };

type Amounts = ReadonlyMap<string, number>;

export type Reports = {
  /** Notes an answer that begins; the result is called at its end. */
  readonly begin: (image: KnownImage, address: string) => (answer?: KnownAnswer) => void;
  /** Makes the next report; undefined if there is nothing new. */
  readonly make: (now: {
    readonly tenants: Amounts;
    readonly owners: Amounts;
  }) => WorkerReport | undefined;
};

type Reading = { readonly image: KnownImage; readonly address: string; readonly since: number };

/** Milliseconds between two reports of an answer in progress. */
const LONG = 10_000;

export function createReports(): Reports {
  const reading = new Set<Reading>();
  let batch = createBatch();
  let lookedAt = performance.now();
  const tenants = createChanges();
  const owners = createChanges();
  const addReading = (): void => {
    const now = performance.now();
    if (now - lookedAt < LONG) return;
    lookedAt = now;
    for (const { image, address, since } of reading) {
      if (now - since > LONG) batch.addReading(image, address);
    }
  };
  return {
    begin(image, address) {
      const entry: Reading = { image, address, since: performance.now() };
      reading.add(entry);
      return (answer) => {
        reading.delete(entry);
        if (answer) batch.addAnswer(image, address, answer);
      };
    },
    make(now) {
      addReading();
      const [ofTenants, ofOwners] = [tenants(now.tenants), owners(now.owners)];
      if (batch.isEmpty() && !ofTenants && !ofOwners) return undefined;
      const report = {
        ...batch.list(),
        ...(ofTenants && { tenants: ofTenants }),
        ...(ofOwners && { owners: ofOwners }),
      };
      batch = createBatch();
      return report;
    },
  };
}

/** Creates a list of what is reported next; images and addresses are in it once. */
function createBatch() {
  const images = new Map<KnownImage, number>();
  const addresses = new Map<string, number>();
  const answers: ReportedAnswer[] = [];
  const reading = new Map<string, readonly [image: number, address: number]>();
  return {
    addAnswer(image: KnownImage, address: string, answer: KnownAnswer): void {
      const { method, entry, milliseconds } = answer;
      const { status, start = -1, sent, complete, error } = entry;
      const about = [numberOf(images, image), numberOf(addresses, address), method] as const;
      const spent = Math.round(milliseconds * 100) / 100;
      const given = [...about, status, start, sent, complete ? 1 : 0, spent] as const;
      answers.push(error === undefined ? given : [...given, describe(error)]);
    },
    addReading(image: KnownImage, address: string): void {
      const pair = [numberOf(images, image), numberOf(addresses, address)] as const;
      reading.set(pair.join(' '), pair);
    },
    isEmpty: (): boolean => answers.length === 0 && reading.size === 0,
    list: (): WorkerReport => ({
      type: 'report',
      images: [...images.keys()].map(({ route, file }) => ({ route, file })),
      addresses: [...addresses.keys()],
      answers,
      reading: [...reading.values()],
    }),
  };
}

function numberOf<Key>(numbers: Map<Key, number>, key: Key): number {
  const number = numbers.get(key) ?? numbers.size;
  if (number === numbers.size) numbers.set(key, number);
  return number;
}

const describe = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);

/** Creates a function that lists amounts if they differ from those of its last call. */
function createChanges(): (amounts: Amounts) => readonly Amount[] | undefined {
  let last: Amounts = new Map();
  return (amounts) => {
    const isSame =
      amounts.size === last.size &&
      [...amounts].every(([owner, count]) => last.get(owner) === count);
    if (isSame) return undefined;
    last = new Map(amounts);
    return [...last];
  };
}

export function* readAnswers(report: WorkerReport): Generator<WorkerAnswer> {
  for (const [
    index,
    from,
    method,
    status,
    start,
    sent,
    whole,
    milliseconds,
    why,
  ] of report.answers) {
    const [image, address] = [report.images[index], report.addresses[from]];
    if (!image || address === undefined) continue;
    const entry: ServedEntry = {
      status,
      sent,
      complete: whole === 1,
      ...(start >= 0 && { start }),
      ...(why !== undefined && { error: new Error(why) }),
    };
    yield { image, address, method, entry, milliseconds };
  }
}

export const readReading = ({ images, addresses, reading }: WorkerReport): WorkerReading[] =>
  reading.flatMap(([index, from]) => {
    const [image, address] = [images[index], addresses[from]];
    return image && address !== undefined ? [{ image, address }] : [];
  });
