import { join, resolve } from 'node:path';
import { findDevice } from '../../base/disk/block-device.ts';
import { UsageError } from '../../base/errors.ts';
import { createHttp } from '../../base/http/http.ts';
import { reportRequests, type HttpRequestEvent } from '../../base/http/body.ts';
import { withoutUndefined } from '../../base/lists.ts';
import type { RangeSource } from '../../base/random-access.ts';
import { createRetries, type RetryEvent } from '../../base/retry.ts';
import { follow } from '../../base/wait.ts';
import { openRandomAccess, type RandomAccess } from '../../base/random-access.ts';
import { refuseHalfCustomised } from '../customize/half-customised.ts';
import { standInFor } from '../output/claim-device.ts';
import { createCachedAccess } from '../../base/ranges.ts';
import type { RangeOpener } from './range-opener.ts';
import { createRangeReader, type RangeReader } from '../../base/ranges.ts';
import { openArtifactRanges } from '../artifact/artifact-ranges.ts';
import { openS3Ranges } from './s3-ranges.ts';
import { openWebRanges } from './web-ranges.ts';

/** What opening a source needs of the world. */
export type SourceHost = {
  readonly env: NodeJS.ProcessEnv;
  /** Relative paths start here. */
  readonly cwd: string;
  /** `/etc/containers`; absent: registries.conf of the system is not read. */
  readonly containersDir?: string;
  readonly signal: AbortSignal;
  /** Milliseconds that a server which has answered is asked again while it gives no byte; default ten minutes. */
  readonly retryFor?: number;
  /** Told of requests, and of hosts that are waited for. */
  readonly emit: (event: RetryEvent | HttpRequestEvent) => void;
};

/** Who opens what is named with a scheme. */
const OPENERS: Readonly<Record<string, RangeOpener>> = {
  http: openWebRanges,
  https: openWebRanges,
  oci: openArtifactRanges,
  s3: openS3Ranges,
};

/** Whether a text names something elsewhere, and no path of this machine. */
export const isElsewhere = (text: string): boolean => schemeOf(text) !== undefined;

const schemeOf = (text: string): string | undefined =>
  /^([a-z][a-z0-9+.-]*):\/\//i.exec(text)?.[1]?.toLowerCase();

/**
 * The one door to media that somebody names: a file, a block device, or an address with a scheme. Close it.
 *
 * @throws ConfigError `iso.unreadable`; UsageError `source.address`; RegistryError of its server
 */
export async function openSource(text: string, host: SourceHost): Promise<RandomAccess> {
  if (!isElsewhere(text)) return openLocal(resolve(host.cwd, text), host.cwd);
  const { source, readRange, close } = await openElsewhere(text, host);
  return createCachedAccess(source, readRange, close);
}

/** What is elsewhere, without a cache. */
export type OpenedElsewhere = {
  readonly source: RangeSource;
  readonly readRange: RangeReader;
  readonly close: () => Promise<void>;
};

/**
 * As `openSource`, for who has a cache of its own; not for a path of this machine.
 *
 * @throws UsageError `source.address`; RegistryError of its server
 */
export async function openElsewhere(text: string, host: SourceHost): Promise<OpenedElsewhere> {
  const open = OPENERS[schemeOf(text) ?? ''];
  if (!open || !URL.canParse(text)) {
    throw new UsageError('source.address', `${text} is not an address that can be read`, {
      expected: `a path, or an address with ${Object.keys(OPENERS).join('://, ')}://`,
      hint: 'correct the address, or write a path as ./PATH',
    });
  }
  const closing = new AbortController();
  const forget = follow([host.signal], closing);
  const { env, cwd, containersDir, emit, retryFor } = host;
  const retries = createRetries({ onEvent: emit, ...withoutUndefined({ retryFor }) });
  // Who gives up sooner than a request does so in the middle of a body, too.
  const patience = withoutUndefined({ bodyTimeout: retryFor === 0 ? undefined : retryFor });
  const http = reportRequests(createHttp({ env, retries, ...patience }), emit);
  const { signal } = closing;
  const close = async (): Promise<void> => {
    forget();
    closing.abort(new Error(`${text} is closed`));
    await http.close();
  };
  try {
    const tools = { env, cwd, signal, http, ...withoutUndefined({ containersDir }) };
    const opened = await open(text, tools);
    const reading = { signal, host: opened.host };
    const openBudget = (signal: AbortSignal) => retries.open(opened.host, signal);
    const readRange = createRangeReader(opened.source, { ...reading, openBudget });
    return {
      source: opened.source,
      readRange,
      async close() {
        await close();
        await opened.close?.();
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Does something with a source and closes it in any case. */
export async function useSource<Result>(
  text: string,
  host: SourceHost,
  work: (source: RandomAccess) => Promise<Result>,
): Promise<Result> {
  const source = await openSource(text, host);
  try {
    return await work(source);
  } finally {
    await source.close();
  }
}

/**
 * @param cwd where the work directory is in which a device may have something half-done
 * @throws ConfigError `iso.unreadable`; DiskError `customize.half-way`
 */
async function openLocal(path: string, cwd?: string): Promise<RandomAccess> {
  const image = await openRandomAccess(path);
  try {
    const device = cwd === undefined ? undefined : findDevice(path);
    await refuseHalfCustomised(image, device && standInFor(device, join(cwd ?? '', '.sealift')));
    return image;
  } catch (error) {
    await image.close();
    throw error;
  }
}
