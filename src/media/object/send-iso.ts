import { RegistryError, SealiftError } from '../../base/errors.ts';
import { follow } from '../../base/wait.ts';
import { countParts, planParts, type PartPlan } from './plan-parts.ts';
import type { SendOptions, SentIso } from './send-options.ts';
import { beginSending, type SentParts } from './sending.ts';
import { removeUploadRecord } from './upload-record.ts';
import { beginUpload, completeUpload, type Upload } from './upload.ts';

/**
 * Sends an ISO to an object store: what the object that is there has is copied by the service, every other
 * byte is sent once, verified before the upload is completed. Killed at any moment, the same call continues
 * the upload. Memory: a part for each lane.
 *
 * @throws RegistryError of the service, `object-store.changed`; IntegrityError `extent.wrong-digest`,
 * `object-store.wrong-size`; whatever the opener throws. The unfinished upload stays, and a warning names it.
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

/** Swift takes no more by default. */
const FEW_PARTS = 1000;

/** The last part is tried first where not all services take so many: else its refusal would come behind gigabytes. */
async function planForService(options: SendOptions): Promise<PartPlan> {
  const { layout, earlier, fewParts = FEW_PARTS } = options;
  const plan = planParts(layout, earlier);
  const count = countParts(plan);
  if (count <= fewParts || (await takesPart(options, count))) return plan;
  return planParts(layout, earlier, fewParts);
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
