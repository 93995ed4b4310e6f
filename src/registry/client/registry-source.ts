import { IntegrityError, RegistryError } from '../../base/errors.ts';
import type { BlobSource, OpenBlob } from '../blob-source.ts';
import type { Descriptor } from '../descriptor.ts';
import { explainAnswer } from './answer.ts';
import { headerOf, readText } from './body.ts';
import type { Retries } from '../../base/retry.ts';
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
  return {
    name: endpoint.host,
    local: false,
    openBudget: (signal) => retries.open(endpoint.host, signal),
    open(blob, { offset, signal, budget }) {
      const ask = {
        endpoint,
        repository,
        path: `blobs/${blob.digest}`,
        headers: {
          'accept': '*/*',
          // Bytes are counted and hashed as stored: no compression on the way.
          'accept-encoding': 'identity',
          ...(offset > 0 && { range: `bytes=${offset}-` }),
        },
        signal,
        ...(budget && { budget }),
      };
      return requester(ask, (response) =>
        takeBlob(response, { blob, offset, host: endpoint.host }),
      );
    },
  };
}

type Wanted = { readonly blob: Descriptor; readonly offset: number; readonly host: string };

async function takeBlob(
  response: TransportResponse,
  wanted: Wanted,
): Promise<OpenBlob | undefined> {
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
      throw differs(wanted, `at most ${offset}`);
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
