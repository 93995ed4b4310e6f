import { createHash } from 'node:crypto';
import { formatSize } from '../../base/text/words.ts';
import { partsOf, type Filler, type Part, type PartGroup, type PartPlan } from './plan-parts.ts';
import { sendGroup, type GroupTools } from './send-group.ts';
import type { EarlierObject, SendOptions, SentCounters, SentIso } from './send-options.ts';
import type { Upload } from './upload.ts';
import { createWholeDigest } from './whole-digest.ts';

export type SentParts = SentIso & { readonly etags: readonly string[] };

export type Sending = {
  readonly run: (index: number, group: PartGroup) => Promise<void>;
  readonly finish: () => SentParts;
};

/** What lanes do with groups, and what comes of all of them. */
export function beginSending(options: SendOptions, plan: PartPlan, upload: Upload): Sending {
  const { earlier, signal, layout, openExtent } = options;
  const object = options.open(signal);
  const standing = createStanding(options, plan, upload);
  const { counters, etags, stand } = standing;
  const whole = isPassing(plan, upload) ? createWholeDigest() : undefined;
  const sendPart = async (part: Part, bytes: Uint8Array): Promise<void> => {
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
  const stand = ({ number, size }: Part, etag: string, kind: keyof SentCounters): void => {
    counters[kind] += size;
    if (!etags.has(number)) bytes += size;
    etags.set(number, etag);
    onProgress(bytes);
  };
  for (const [index, known] of done) {
    const parts = groups[index] ? partsOf(groups[index]) : [];
    for (const [at, part] of parts.entries()) stand(part, known[at] ?? '', 'reused');
  }
  return { counters, etags, stand };
}

/** Whether every byte of the ISO passes here, in this run. */
const isPassing = (plan: PartPlan, { done }: Upload): boolean =>
  done.size === 0 && !hasCopies(plan);

const hasCopies = ({ groups }: PartPlan): boolean =>
  groups.some((group) => group.kind === 'copy' || group.pieces.some((piece) => 'from' in piece));

function explainNone(plan: PartPlan, { done }: Upload): string {
  if (hasCopies(plan)) {
    return `${formatSize(plan.copied)} were copied by the service, out of the object that was there`;
  }
  return done.size > 0 ? 'an earlier run sent a part of it' : 'a source gave bytes of it twice';
}

function requireEarlier(earlier: EarlierObject | undefined): EarlierObject {
  if (!earlier) throw new Error('bytes of an object that is not there are wanted');
  return earlier;
}

/** As ETags of parts are; undefined where the machine has no md5, as with FIPS. */
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
