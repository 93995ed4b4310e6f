import { createHash } from 'node:crypto';
import { digestFromHex, type Digest } from '../../base/digest.ts';
import { RegistryError, SealiftError } from '../../base/errors.ts';
import { formatSize } from '../../base/text/words.ts';
import { waitFor, follow } from '../../base/wait.ts';
import type { EarlierObject, SendOptions, SentCounters, SentIso } from './sent.ts';
import { sendGroup, type GroupTools } from './group.ts';
import {
  partsOf,
  type Filler,
  type ObjectPart,
  type PartGroup,
  type PartPlan,
  countParts,
  planObjectParts,
} from './parts.ts';
import { type Upload, removeUploadRecord, beginUpload, completeUpload } from './upload.ts';

/**
 * Sends an ISO to an object store: the service copies the bytes that the existing object has, every other
 * byte is sent once and verified before the upload is completed. After a kill, the same call continues.
 * Memory: a part for each lane.
 */
export async function sendIso(options: SendOptions): Promise<SentIso> {
  const plan = await planForService(options);
  const upload = await beginUpload(options, plan);
  try {
    const { etags, ...sent } = await sendGroups(options, plan, upload);
    if (sent.digest !== undefined) await upload.record.noteDigest(sent.digest);
    await options.beforeComplete();
    await completeUpload(options, upload, etags);
    return sent;
  } catch (error) {
    if (error instanceof SealiftError && error.code === 'object-store.upload-lost') {
      await removeUploadRecord(options.record);
    } else {
      options.warn(
        `upload ${upload.id} of ${upload.object.name} is unfinished: run the same command to continue it, or abort it`,
      );
    }
    throw error;
  } finally {
    await upload.record.close();
  }
}

/** Swift takes no more parts by default. */
const FEW_PARTS = 1000;

/** If not all services take so many parts, the last is tried first: a refusal costs no gigabytes. */
async function planForService(options: SendOptions): Promise<PartPlan> {
  const { layout, earlier, fewParts = FEW_PARTS } = options;
  const plan = planObjectParts(layout, earlier);
  const count = countParts(plan);
  if (count <= fewParts || (await takesPart(options, count))) return plan;
  return planObjectParts(layout, earlier, fewParts);
}

async function takesPart({ open, signal }: SendOptions, number: number): Promise<boolean> {
  const object = open(signal);
  const upload = await object.beginUpload({});
  try {
    await object.sendPart({ upload, number }, new Uint8Array());
    return true;
  } catch (error) {
    if (error instanceof RegistryError && error.found === '400') return false;
    throw error;
  } finally {
    await object.abort(upload);
  }
}

/** Bytes of memory for parts: large parts are sent by fewer lanes. */
const MOST_MEMORY = 512 << 20;

async function sendGroups(
  options: SendOptions,
  plan: PartPlan,
  upload: Upload,
): Promise<SentParts> {
  const stop = new AbortController();
  const forget = follow([options.signal], stop);
  const sending = beginSending({ ...options, signal: stop.signal }, plan, upload);
  const queue = [...plan.groups.entries()].filter(([index]) => !upload.done.has(index));
  const runLane = async (): Promise<void> => {
    try {
      for (let task = queue.shift(); task; task = queue.shift()) await sending.run(...task);
    } catch (error) {
      stop.abort(error); // the others end with the same error
    }
  };
  const most = Math.max(1, Math.floor(MOST_MEMORY / Math.max(1, plan.partSize)));
  const lanes = Math.min(options.lanes, most, queue.length);
  try {
    await Promise.all(Array.from({ length: lanes }, runLane));
    stop.signal.throwIfAborted();
    return sending.finish();
  } finally {
    forget();
  }
}

export type SentParts = SentIso & { readonly etags: readonly string[] };

export type Sending = {
  readonly run: (index: number, group: PartGroup) => Promise<void>;
  readonly finish: () => SentParts;
};

/** The work of lanes on groups, and its combined result. */
function beginSending(options: SendOptions, plan: PartPlan, upload: Upload): Sending {
  const { earlier, signal, layout, openExtent } = options;
  const object = options.open(signal);
  const standing = createStanding(options, plan, upload);
  const { counters, etags, stand } = standing;
  const whole = isPassing(plan, upload) ? createWholeDigest() : undefined;
  const sendPart = async (part: ObjectPart, bytes: Uint8Array): Promise<void> => {
    const { number, size } = part;
    const listed = upload.listed.get(number);
    if (listed?.size === size && listed.etag === md5Of(bytes)) stand(part, listed.etag, 'reused');
    else {
      upload.listed.delete(number);
      stand(part, await object.sendPart({ upload: upload.id, number }, bytes), 'written');
    }
  };
  const tools: GroupTools = {
    openExtent,
    openEarlier: (range) => readEarlier(earlier, range),
    signal,
    onBytes(size, { local }) {
      counters[local ? 'copied' : 'fetched'] += size;
    },
    async send(part, bytes) {
      await Promise.all([sendPart(part, bytes), whole?.take(part.offset, bytes, signal)]);
    },
  };
  return {
    async run(index, group) {
      if (group.kind === 'send') await sendGroup(group, tools);
      else {
        const { part, from } = group;
        const { etag } = requireEarlier(earlier);
        const id = { upload: upload.id, number: part.number };
        const copied = await object.copyPart(id, { offset: from, size: part.size, etag });
        stand(part, copied, 'copiedByServer');
      }
      await upload.record.noteGroup(
        index,
        partsOf(group).map(({ number }) => etags.get(number) ?? ''),
      );
    },
    finish() {
      const sorted = [...etags].sort(([a], [b]) => a - b).map(([, etag]) => etag);
      const digest = whole?.finish(layout.size);
      const known = digest === undefined ? { noChecksum: explainNone(plan, upload) } : { digest };
      return { ...counters, ...known, etags: sorted };
    },
  };
}

/** The parts that the service has, beginning with those of groups that an earlier run finished. */
function createStanding({ onProgress }: SendOptions, { groups }: PartPlan, { done }: Upload) {
  const counters: SentCounters = {
    fetched: 0,
    copied: 0,
    reused: 0,
    written: 0,
    copiedByServer: 0,
  };
  const etags = new Map<number, string>();
  let bytes = 0;
  const stand = ({ number, size }: ObjectPart, etag: string, kind: keyof SentCounters): void => {
    counters[kind] += size;
    if (!etags.has(number)) bytes += size;
    etags.set(number, etag);
    onProgress(bytes, counters.fetched);
  };
  for (const [index, known] of done) {
    const parts = groups[index] ? partsOf(groups[index]) : [];
    for (const [at, part] of parts.entries()) stand(part, known[at] ?? '', 'reused');
  }
  return { counters, etags, stand };
}

/** True if every byte of the ISO passes through this run. */
const isPassing = (plan: PartPlan, { done }: Upload): boolean =>
  done.size === 0 && !hasCopies(plan);

const hasCopies = ({ groups }: PartPlan): boolean =>
  groups.some((group) => group.kind === 'copy' || group.pieces.some((piece) => 'from' in piece));

function explainNone(plan: PartPlan, { done }: Upload): string {
  if (hasCopies(plan)) {
    return `the service copied ${formatSize(plan.copied)} from the existing object`;
  }
  return done.size > 0 ? 'an earlier run sent part of it' : 'a source sent some of its bytes twice';
}

function requireEarlier(earlier: EarlierObject | undefined): EarlierObject {
  if (!earlier) throw new Error('bytes of a missing object were requested');
  return earlier;
}

/** MD5 in the form of a part's ETag; undefined if the machine has no md5, for example with FIPS. */
function md5Of(bytes: Uint8Array): string | undefined {
  try {
    return createHash('md5').update(bytes).digest('hex');
  } catch {
    return undefined;
  }
}

const PIECE = 1 << 20;

async function* readEarlier(
  earlier: EarlierObject | undefined,
  { from, size }: Filler,
): AsyncGenerator<Uint8Array> {
  const { access } = requireEarlier(earlier);
  for (let done = 0; done < size; done += PIECE) {
    yield await access.read(from + done, Math.min(PIECE, size - done));
  }
}

/** The digest of parts that arrive several at a time; each waits for the parts before it. */
export type WholeDigest = {
  /** Resolves when the bytes are taken, or no longer needed. */
  readonly take: (offset: number, bytes: Uint8Array, signal: AbortSignal) => Promise<void>;
  /** Returns undefined if the digest was given up, or bytes are missing. */
  readonly finish: (size: number) => Digest | undefined;
};

/** Given up when bytes arrive a second time: they cannot be taken out of it again. */
function createWholeDigest(): WholeDigest {
  const hash = createHash('sha256');
  let position = 0;
  let isGivenUp = false;
  let waiting: (() => void)[] = [];
  const wake = (): void => {
    const all = waiting;
    waiting = [];
    for (const resume of all) resume();
  };
  return {
    async take(offset, bytes, signal) {
      while (!isGivenUp && offset > position) {
        await waitFor<undefined>(signal, (resolve) => {
          waiting.push(() => {
            resolve(undefined);
          });
        });
      }
      isGivenUp ||= offset < position;
      if (!isGivenUp) {
        hash.update(bytes);
        position += bytes.length;
      }
      wake();
    },
    finish: (size) =>
      isGivenUp || position !== size ? undefined : digestFromHex(hash.digest('hex')),
  };
}
