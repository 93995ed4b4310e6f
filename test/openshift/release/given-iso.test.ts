import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createRedaction } from '../../../src/base/text/redact.ts';
import { digestOf } from '../../../src/base/digest.ts';
import { createHttp } from '../../../src/base/http/http.ts';
import { createFileDigests } from '../../../src/base/disk/file-digests.ts';
import {
  takeGivenIso,
  type BaseIso,
  type GivenBaseIso,
} from '../../../src/openshift/release/base-iso.ts';
import { serveByTls, type TlsServer } from '../../support/tls-server.ts';
import { requireTool } from '../../support/tools.ts';
import { createTestRetries } from '../../support/test-clock.ts';

const iso = Buffer.concat([randomBytes(300_000), Buffer.alloc(300_000, 'ISO ')]);
const packed = gzipSync(iso);
const http = createHttp({ redaction: createRedaction(), env: {}, retries: createTestRetries() });

describe.skipIf(!requireTool('openssl'))('a live ISO that is given packed', () => {
  let directory: string;
  let server: TlsServer | undefined;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'given-iso-'));
  });
  afterEach(async () => {
    await server?.close();
    server = undefined;
    await rm(directory, { recursive: true });
  });

  const cache = (): string => join(directory, 'cache');
  const listCache = async (): Promise<string[]> => (await readdir(cache())).sort();

  const take = (given: GivenBaseIso): Promise<BaseIso> =>
    takeGivenIso(given, cache(), {
      http,
      digests: createFileDigests(join(directory, 'digests')),
      signal: AbortSignal.timeout(20_000),
      ...(server && { tls: { ca: [server.certificate] } }),
    });

  async function fetch(
    answer: (request: IncomingMessage, response: ServerResponse) => void,
    { sha256 = digestOf(iso), path = '/live.iso.gz?a=b' } = {},
  ): Promise<BaseIso> {
    await server?.close();
    server = await serveByTls(directory, answer);
    return take({ url: `${server.url}${path}`, sha256 });
  }

  it('as a file is unpacked once, and stored by the digest of its contents', async () => {
    const file = join(directory, 'live.iso.gz');
    await writeFile(file, packed);
    const taken = await take({ file });
    expect(taken).toMatchObject({ size: iso.length, digest: digestOf(iso), from: file });
    expect(digestOf(await readFile(taken.path))).toBe(digestOf(iso));
    const kept = await listCache();
    expect(kept).toHaveLength(2); // and the record of it
    expect(await take({ file })).toEqual(taken);
    await writeFile(file, gzipSync('other'));
    expect(await take({ file })).toMatchObject({ digest: digestOf('other') });
  });

  it('must not be a directory', async () => {
    await expect(take({ file: directory })).rejects.toMatchObject({
      code: 'base-iso.missing',
      message: `base ISO "${directory}" does not exist, or is not a file`,
    });
  });

  it('at an address is compared with the digest of the ISO, and fetched once', async () => {
    const taken = await fetch((_, response) => response.end(packed));
    expect(taken).toMatchObject({ size: iso.length, digest: digestOf(iso) });
    expect(taken.from).toMatch(/^https:\/\/localhost:\d+\/live\.iso\.gz\?a=b$/);
    const hex = digestOf(iso).slice('sha256:'.length);
    expect(await listCache()).toEqual([`${hex}.iso`, `${hex}.iso.json`]);
    const url = `${server?.url ?? ''}/live.iso.gz?a=b`;
    expect(await take({ url, sha256: digestOf(iso) })).toEqual(taken);
    expect(server?.requests).toEqual(['/live.iso.gz?a=b']);
  });

  it('at an address is continued after an interrupted run', async () => {
    const hex = digestOf(iso).slice('sha256:'.length);
    await fetch((_, response) => response.end('x')).catch(() => undefined);
    await writeFile(join(cache(), `${hex}.iso.gz.partial`), packed.subarray(0, 1000));
    let range: string | undefined;
    const taken = await fetch((request, response) => {
      range = request.headers.range;
      const contentRange = `bytes 1000-${packed.length - 1}/${packed.length}`;
      response.writeHead(206, { 'content-range': contentRange }).end(packed.subarray(1000));
    });
    expect(range).toBe('bytes=1000-');
    expect(taken.digest).toBe(digestOf(iso));
    expect(await listCache()).toEqual([`${hex}.iso`, `${hex}.iso.json`]);
  });

  it('leaves nothing behind if it is another ISO, not gzip, or missing', async () => {
    const other = fetch((_, response) => response.end(gzipSync('other')));
    await expect(other).rejects.toMatchObject({
      code: 'base-iso.digest',
      found: digestOf('other'),
      hint: expect.stringContaining('unpacked ISO') as string,
    });
    expect(await listCache()).toEqual([]);
    const page = fetch((_, response) => response.end('<html>Welcome</html>'));
    await expect(page).rejects.toMatchObject({
      code: 'unpack.malformed',
      message: expect.stringMatching(
        /^https:.*\.iso\.gz\?a=b is not a complete gzip file$/,
      ) as string,
    });
    expect(await listCache()).toEqual([]);
    const absent = fetch((_, response) => response.writeHead(404).end());
    await expect(absent).rejects.toMatchObject({ code: 'download.refused', exitCode: 4 });
    expect(await listCache()).toEqual([]);
  });

  it('is refused with a hint if the digest is that of the packed file', async () => {
    const work = fetch((_, response) => response.end(packed), { sha256: digestOf(packed) });
    await expect(work).rejects.toMatchObject({
      code: 'base-iso.digest',
      hint: 'give the sha256 of the unpacked ISO: this one is of the packed file',
    });
  });
});
