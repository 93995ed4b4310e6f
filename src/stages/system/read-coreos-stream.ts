import type { Stage } from '../../engine/stage.ts';
import { isUnreadable } from '../../base/disk/disk-errors.ts';
import { ConfigError } from '../../base/errors.ts';
import { readInputFile } from '../../base/disk/files.ts';
import type { Http } from '../../base/http/http.ts';
import type { TlsOptions } from '../../base/http/proxy.ts';
import { fetchStreamIso, findStreamIso, type StreamIso } from '../../openshift/release/base-iso.ts';
import type { RpmArchitecture } from '../../openshift/release/bundle.ts';

/** Where the metadata of a CoreOS stream is. It vouches for the ISO, so its address is https. */
export type CoreosStream = { readonly streamFile: string } | { readonly streamUrl: string };

export type ReadCoreosStreamInput = {
  readonly stream: CoreosStream;
  readonly arch: RpmArchitecture;
};

export type ReadCoreosStreamTools = {
  readonly http: Http;
  readonly tls?: TlsOptions;
};

/**
 * Address and digest of the live ISO that a CoreOS stream has for an architecture. It changes with the next
 * build of CoreOS, so it is read each time.
 *
 * @throws ConfigError `coreos-stream.missing`, `coreos-stream.malformed`, `coreos-stream.no-iso`; what
 * `fetchText` throws
 */
export const readCoreosStream: Stage<ReadCoreosStreamInput, StreamIso, ReadCoreosStreamTools> = {
  name: 'read CoreOS stream',
  async run({ stream, arch }, { http, tls }, { signal }) {
    if ('streamFile' in stream) {
      const { streamFile } = stream;
      return findStreamIso(readStreamFile(streamFile), arch, `"${streamFile}"`);
    }
    return fetchStreamIso(stream.streamUrl, arch, { http, signal, ...(tls && { tls }) });
  },
};

function readStreamFile(path: string): string {
  try {
    return readInputFile(path, { domain: 'coreos-stream' }).toString('utf8');
  } catch (cause) {
    if (!isUnreadable(cause)) throw cause;
    throw new ConfigError('coreos-stream.missing', `CoreOS stream "${path}" cannot be read`, {
      cause,
      hint: 'check the name of the file',
    });
  }
}
