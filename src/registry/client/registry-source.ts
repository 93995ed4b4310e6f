import { IntegrityError, RegistryError } from '../../base/errors.ts';
import type { OpenBytes } from '../../base/download/sources.ts';
import type { BlobSource } from '../../base/store/blob-source.ts';
import type { Descriptor } from '../descriptor.ts';
import { explainAnswer } from './answer.ts';
import { headerOf, readText } from '../../base/http/body.ts';
import type { Budget, Retries } from '../../base/retry.ts';
import type { Requester } from './requester.ts';
import type { Endpoint, TransportResponse } from './transport.ts';

/**
 * The blobs of a repository (distribution-spec, end-2). Every opening asks the registry itself:
 * where it redirects to is signed for minutes only. An answer whose headers already contradict the
 * descriptor's size is refused before its body is read.
 */
export function createRegistrySource(
  requester: Requester,
  {
    endpoint,
    repository,
    retries,
  }: { readonly endpoint: Endpoint; readonly repository: string; readonly retries: Retries },
): BlobSource {
  const { host } = endpoint;
  const open: BlobSource['open'] = async (blob, options) => {
    const { offset, size, signal, budget } = options;
    const last = size === undefined ? '' : String(offset + size - 1);
    const ask = {
      endpoint,
      repository,
      path: `blobs/${blob.digest}`,
      headers: {
        'accept': '*/*',
        // Bytes are counted and hashed as stored: no compression on the way.
        'accept-encoding': 'identity',
        ...((offset > 0 || size !== undefined) && { range: `bytes=${offset}-${last}` }),
      },
      signal,
      ...(budget && { budget }),
    };
    const opened = await requester(ask, (response) => takeBlob(response, { blob, offset, host }));
    return opened === 'starts over' ? open(blob, { ...options, offset: 0 }) : opened;
  };
  const openBudget = (signal: AbortSignal): Budget => retries.open(host, signal);
  return { name: host, local: false, openBudget, open };
}

type Wanted = { readonly blob: Descriptor; readonly offset: number; readonly host: string };

async function takeBlob(
  response: TransportResponse,
  wanted: Wanted,
): Promise<OpenBytes | 'starts over' | undefined> {
  const { status, headers, body } = response;
  const { blob, offset, host } = wanted;
  switch (status) {
    case 200:
      checkSize(wanted, headerOf(headers, 'content-length'));
      return { offset: 0, body };
    case 206:
      checkRange(wanted, headerOf(headers, 'content-range'));
      return { offset, body };
    case 404:
      await readText(body);
      return undefined;
    case 416:
      await readText(body);
      // It has another file than the one we have a part of: how long that is, its headers tell.
      if (offset > 0) return 'starts over';
      throw differs(wanted, '0');
    default: {
      const text = await readText(body);
      throw explainAnswer(host, { status, headers, text, about: `GET ${blob.digest}` }, Date.now());
    }
  }
}

function checkSize(wanted: Wanted, size: string | undefined): void {
  if (size === undefined || !/^\d+$/.test(size) || Number(size) === wanted.blob.size) return;
  throw differs(wanted, size);
}

/** RFC 9110 14.4. */
function checkRange(wanted: Wanted, range: string | undefined): void {
  const [, first, total] = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(range ?? '') ?? [];
  if (first === undefined || Number(first) !== wanted.offset) {
    throw new RegistryError(
      'registry.range',
      `${wanted.host} sends another part of blob ${wanted.blob.digest} than was asked for`,
      { expected: `bytes from ${wanted.offset}`, found: range ?? 'no Content-Range' },
    );
  }
  if (total !== '*') checkSize(wanted, total);
}

function differs({ blob, host }: Wanted, found: string): IntegrityError {
  const isLonger = Number(found) > blob.size;
  return new IntegrityError(
    isLonger ? 'blob.too-long' : 'blob.too-short',
    `blob ${blob.digest} should be ${blob.size} bytes, but ${host} has ${found}`,
    { expected: String(blob.size), found },
  );
}
