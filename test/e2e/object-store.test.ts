import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CreateBucketCommand } from '@aws-sdk/client-s3';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createRedaction } from '../../src/base/text/redact.ts';
import { digestOf } from '../../src/base/digest.ts';
import { InterruptedError } from '../../src/base/errors.ts';
import { createHttp, type Http } from '../../src/base/http/http.ts';
import { digestFile } from '../../src/base/disk/files.ts';
import { openS3Source } from '../../src/base/s3/object.ts';
import { runProcess } from '../../src/base/process.ts';
import { createS3, type S3 } from '../../src/base/s3/s3.ts';
import { digestLayout } from '../../src/pour/spans.ts';
import { sendIso } from '../../src/outputs/object/send.ts';
import type { SendOptions } from '../../src/outputs/object/sent.ts';
import { openStoredObject } from '../../src/outputs/object/stored.ts';
import { makeLayout, MIB, openFrom, REGISTRY } from '../support/pour-layout.ts';
import { createLiveWorld, type LiveWorld, type Outcome } from '../support/live-iso.ts';
import { buildLayeredImage } from '../support/release.ts';
import { startS3Front, type S3Fault, type S3Front } from '../support/s3-front.ts';
import { API, PULL_SECRET, startService } from '../support/service.ts';
import { startSwift, type Swift } from '../support/swift.ts';
import { requireTool } from '../support/tools.ts';

const redaction = createRedaction();

/*
 * All that needs a real S3 service, in one file: it is Debian's Swift, which takes seconds to start.
 */

const SERVERS = ['account', 'container', 'object', 'proxy'].map((kind) => `swift-${kind}-server`);
const hasSwift = [...SERVERS, 'memcached'].every(requireTool);

let directory: string;
let swift: Swift;
let front: S3Front;
let http: Http;
let s3: S3;

const { signal } = new AbortController();
const Bucket = 'media';

beforeAll(async () => {
  if (!hasSwift) return;
  directory = await mkdtemp(join(tmpdir(), 'swift-'));
  swift = await startSwift(directory);
  front = await startS3Front(swift.endpoint);
  http = createHttp({ redaction, env: {} });
  s3 = createS3({ http, env: swift.env });
  await s3.call(
    ({ client, options }) => client.send(new CreateBucketCommand({ Bucket }), options),
    { about: Bucket, signal },
  );
});

afterAll(async () => {
  if (!hasSwift) return;
  await http.close();
  await front.close();
  await swift.stop();
  await rm(directory, { recursive: true });
});

const put = (Key: string, Body: Uint8Array, Metadata: Record<string, string> = {}) =>
  s3.call(
    ({ sdk, client, options }) =>
      client.send(new sdk.PutObjectCommand({ Bucket, Key, Body, Metadata }), options),
    { about: Key, signal },
  );

async function textOf(pieces: AsyncIterable<Uint8Array>): Promise<string> {
  const all: Uint8Array[] = [];
  for await (const piece of pieces) all.push(piece);
  return Buffer.concat(all).toString();
}

describe.skipIf(!hasSwift)('an object that is read by ranges', () => {
  it('has its size, its version, and the bytes of each range', async () => {
    await put('folder/a b.bin', Buffer.from('0123456789'));
    const source = await openS3Source(s3, { bucket: Bucket, key: 'folder/a b.bin' });
    expect(source).toMatchObject({
      name: 's3://media/folder/a b.bin',
      size: 10,
      version: '"781e5e245d69b566979b86e28d23f2c7"',
    });
    const range = { offset: 3, size: 4 };
    expect(await textOf(await source.open(range))).toBe('3456');
  });

  it('is refused if another object has replaced it', async () => {
    await put('changing', Buffer.from('0123456789'));
    const source = await openS3Source(s3, { bucket: Bucket, key: 'changing' });
    await put('changing', Buffer.from('9876543210'));
    const reading = source.open({ offset: 0, size: 4 });
    await expect(reading).rejects.toMatchObject({ code: 'object-store.changed' });
  });

  it('is not found if it does not exist, and forbidden with a wrong secret, which no message shows', async () => {
    const address = { bucket: Bucket, key: 'none' };
    await expect(openS3Source(s3, address)).rejects.toMatchObject({
      code: 'object-store.not-found',
    });
    const env = { ...swift.env, AWS_SECRET_ACCESS_KEY: 'wrong-secret-of-a-test' };
    const stranger = createS3({ http, env });
    const error: unknown = await openS3Source(stranger, address).catch((error: unknown) => error);
    expect(error).toMatchObject({ code: 'object-store.forbidden' });
    expect(String((error as Error).cause) + String(error)).not.toContain('wrong-secret');
  });
});

/** An object as the SDK gives it; undefined where there is none. */
async function get(Key: string): Promise<Uint8Array | undefined> {
  try {
    return await s3.call(
      async ({ sdk, client, options }) => {
        const { Body } = await client.send(new sdk.GetObjectCommand({ Bucket, Key }), options);
        return Body?.transformToByteArray();
      },
      { about: Key, signal },
    );
  } catch (error) {
    expect(error).toMatchObject({ code: 'object-store.not-found' });
    return undefined;
  }
}

describe.skipIf(!hasSwift)('an ISO that is built into an object store', () => {
  let world: LiveWorld;
  const sizes = [6_500_000, 9_000_000, 13_000_000];

  const addTool = async (index: number): Promise<void> => {
    const layer = [['usr/bin/tool', randomBytes(sizes[index] ?? 0)]] as const;
    world.registry.add(`team/tool${index}`, await buildLayeredImage([layer]), '1');
  };

  beforeAll(async () => {
    world = await createLiveWorld();
    Object.assign(world.env, swift.env, { AWS_ENDPOINT_URL_S3: front.endpoint });
    const names = sizes.map((_, index) => `{name: "${world.registry.host}/team/tool${index}:1"}`);
    for (const index of sizes.keys()) await addTool(index);
    await world.writeConfig(`additionalImages: [${names.join(', ')}]`);
    expectDone(await build('local.iso'));
  });
  afterAll(() => world.close());

  const build = (output: string, ...more: readonly string[]): Promise<Outcome> =>
    world.run('build', '--output', output, '--base-iso', 'test.iso', '-o', 'json', ...more);

  type Report = {
    readonly digest?: string;
    readonly noChecksum?: string;
    readonly isUpToDate: boolean;
    readonly isoSize: number;
    readonly bytes: Readonly<Record<string, number>>;
  };

  function expectDone({ exitCode, stdout, stderr }: Outcome): Report {
    expect([exitCode, stderr]).toEqual([0, expect.not.stringContaining('error')]);
    return JSON.parse(stdout) as Report;
  }

  /** The object, its checksum and report as files, judged by sha256sum. */
  async function fetchAll(key: string): Promise<string> {
    const folder = await mkdtemp(join(directory, 'got-'));
    const [iso, checksum] = await Promise.all([get(key), get(`${key}.sha256`)]);
    const name = key.split('/').at(-1) ?? '';
    await writeFile(join(folder, name), iso ?? '');
    if (checksum) {
      await writeFile(join(folder, 'checksum'), checksum);
      execFileSync('sha256sum', ['--check', '--strict', 'checksum'], { cwd: folder });
    }
    return digestFile(join(folder, name));
  }

  const local = (): Promise<string> => digestFile(join(world.directory, 'local.iso'));

  it('has the bytes of a local build, with its checksum and report next to it', async () => {
    const report = expectDone(await build('s3://media/night/a.iso'));
    expect(await fetchAll('night/a.iso')).toBe(await local());
    expect(report).toMatchObject({ digest: await local(), isUpToDate: false });
    expect(report.bytes).toMatchObject({ written: report.isoSize, copiedByServer: 0 });
    const beside = await get('night/a.iso.report.json');
    expect(JSON.parse(Buffer.from(beside ?? '').toString())).toMatchObject({
      product: 'live-iso',
      digest: report.digest,
    });
  });

  it('is served from there as from a folder, customised', async () => {
    expectDone(await build('s3://media/served/a.iso'));
    const { env, directory: cwd } = world;
    await mkdir(join(cwd, 'isos'));
    await copyFile(join(cwd, 'local.iso'), join(cwd, 'isos/local.iso'));
    const digests: string[] = [];
    for (const store of ['s3://media/served/a.iso', 'isos']) {
      const host = { env, redaction, cwd, signal, emit: () => undefined };
      const service = await startService({ stores: [store], host });
      const cluster = await service.call('POST', `${API}/v2/clusters/disconnected`, {
        body: { name: 'edge', openshift_version: '4.21.3' },
      });
      const { body } = await service.call('POST', `${API}/v2/infra-envs`, {
        body: { name: 'edge', cluster_id: cluster.body['id'], pull_secret: PULL_SECRET },
      });
      const to = join(cwd, 'served.iso');
      await runProcess('curl', ['-sSf', '-o', to, String(body['download_url'])]);
      digests.push(await digestFile(join(cwd, 'served.iso')));
      await service.close();
    }
    expect(digests[0]).toBe(digests[1]);
    expect(digests[0]).not.toBe(await local());
  });

  it('is up to date if nothing changed, and then no byte of it is sent', async () => {
    const before = front.sent();
    const report = expectDone(await build('s3://media/night/a.iso'));
    expect(report).toMatchObject({ isUpToDate: true, digest: await local() });
    expect(front.sent()).toBe(before);
  });

  it('gets a new report if its report is damaged, without sending a byte of the ISO', async () => {
    const key = 'night/a.iso.report.json';
    const found = await openStoredObject(s3, { bucket: Bucket, key }, signal).look();
    await put(key, Buffer.from('{"digest'), found?.metadata);
    const before = front.sent();
    const report = expectDone(await build('s3://media/night/a.iso'));
    expect(report.isUpToDate).toBe(true);
    expect(JSON.parse(Buffer.from((await get(key)) ?? '').toString())).toMatchObject({
      product: 'live-iso',
      isUpToDate: true,
    });
    expect(front.sent() - before).toBeLessThan(1 << 20);
  });

  it('is read by the commands for media, by ranges', async () => {
    for (const command of ['verify', 'inspect']) {
      const { exitCode, stderr } = await world.run(command, 's3://media/night/a.iso');
      expect([exitCode, stderr]).toEqual([0, expect.not.stringContaining('error')]);
    }
  });

  it('is sent again only in its changed parts, and has the bytes of a local rebuild', async () => {
    await addTool(1);
    expectDone(await build('local.iso'));
    const before = front.sent();
    const report = expectDone(await build('s3://media/night/a.iso'));
    expect(await fetchAll('night/a.iso')).toBe(await local());
    const sent = front.sent() - before;
    // The changed image, and a part of 5 MiB at most at each place where little changed.
    expect(sent).toBeLessThan((sizes[1] ?? 0) + 3 * (5 << 20));
    expect(report.bytes).toMatchObject({ written: sent, copiedByServer: report.isoSize - sent });
    expect(report.noChecksum).toContain('the service copied');
    expect(await get('night/a.iso.sha256')).toBeUndefined();
  });

  /** As another client does that damages bytes and keeps what the object says of itself. */
  async function damage(key: string): Promise<void> {
    const iso = Buffer.from((await get(key)) ?? '');
    iso.fill(0xff, iso.length / 2, iso.length / 2 + 4096);
    const found = await openStoredObject(s3, { bucket: Bucket, key }, signal).look();
    await put(key, iso, found?.metadata);
  }

  it('is sent whole if another client wrote it again, even with the same metadata', async () => {
    await damage('night/a.iso');
    const report = expectDone(await build('s3://media/night/a.iso'));
    expect(report).toMatchObject({ isUpToDate: false, bytes: { copiedByServer: 0 } });
    expect(await fetchAll('night/a.iso')).toBe(await local());
    await damage('night/a.iso');
    await addTool(2);
    expectDone(await build('local.iso'));
    const { exitCode, stderr } = await build('s3://media/night/a.iso');
    expect([exitCode, stderr]).toEqual([0, expect.stringContaining('every byte is sent again')]);
    expect(await fetchAll('night/a.iso')).toBe(await local());
  });

  it('is copied by a build in a fresh work directory', async () => {
    await addTool(0);
    expectDone(await build('local.iso'));
    const before = front.sent();
    expectDone(await build('s3://media/night/a.iso', '--work-dir', 'fresh'));
    expect(front.sent() - before).toBeLessThan((sizes[0] ?? 0) + 3 * (5 << 20));
    expect(await fetchAll('night/a.iso')).toBe(await local());
  });

  it('has the bytes of an upgrade ISO, whose other files are in the working directory', async () => {
    const config = await readFile(join(world.directory, 'appliance-config.yaml'), 'utf8');
    const text = config.replace('enableInteractiveFlow: true\n', '');
    await writeFile(join(world.directory, 'upgrade.yaml'), text);
    const upgrade = (output: string): Promise<Outcome> =>
      world.run('build', 'upgrade-iso', 'upgrade.yaml', '--output', output, '-o', 'json');
    const { digest } = expectDone(await upgrade('files/u.iso'));
    expectDone(await upgrade('s3://media/u.iso'));
    expect(await fetchAll('u.iso')).toBe(digest);
    const files = ['upgrade-4.21.3.yaml', 'files/upgrade-4.21.3.yaml'];
    execFileSync('cmp', files, { cwd: world.directory });
  });

  it('replaces an object that no build sent only with --force', async () => {
    await put('foreign.iso', Buffer.from('of somebody else'));
    const before = world.registry.requests.length;
    const { exitCode, stderr } = await build('s3://media/foreign.iso');
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('"code":"output.exists"')]);
    expect(world.registry.requests).toHaveLength(before);
    const { digest } = expectDone(await build('s3://media/foreign.iso', '--force'));
    expect(await fetchAll('foreign.iso')).toBe(digest);
  });
});

describe.skipIf(!hasSwift)('an upload', () => {
  const { layout, blobs, whole } = makeLayout([6 * MIB, 22 * MIB, 1000, 5 * MIB]);
  const digest = digestLayout(layout);
  const warnings: string[] = [];
  let behind: S3;

  beforeAll(() => {
    behind = createS3({ http, env: { ...swift.env, AWS_ENDPOINT_URL_S3: front.endpoint } });
  });
  afterEach(() => {
    front.watch = () => undefined;
    warnings.length = 0;
  });

  const send = (key: string, more: Partial<SendOptions> = {}) =>
    sendIso({
      layout,
      digest,
      metadata: { 'sealift-layout': digest },
      endpoint: front.endpoint,
      record: join(directory, `record-${key}`),
      open: (signal) => openStoredObject(behind, { bucket: Bucket, key }, signal),
      openExtent: openFrom(blobs),
      lanes: 1,
      signal,
      onProgress: () => undefined,
      beforeComplete: () => Promise.resolve(),
      warn: (message) => warnings.push(message),
      ...more,
    });

  const listUploads = (key: string): Promise<readonly string[] | undefined> =>
    openStoredObject(s3, { bucket: Bucket, key }, signal).listUploads();

  /** Sends until so many parts are there, and is interrupted. */
  async function sendSome(key: string, parts: number, more: Partial<SendOptions> = {}) {
    const stop = new AbortController();
    let begun = 0;
    front.watch = ({ kind }) => {
      if (kind !== 'part' || ++begun <= parts) return undefined;
      stop.abort(new InterruptedError('SIGINT'));
      return 'cut';
    };
    const sending = send(key, { ...more, signal: stop.signal });
    await expect(sending).rejects.toMatchObject({ code: 'interrupted' });
    front.watch = () => undefined;
  }

  it('is named after each interruption, continues, and sends no part twice', async () => {
    const before = front.sent();
    for (let run = 0; run < 4; run += 1) {
      await sendSome('stopped', 1);
      expect(warnings.at(-1)).toMatch(/^upload \S+ of s3:\/\/media\/stopped is unfinished/);
    }
    const { written, reused, noChecksum } = await send('stopped');
    expect(whole.equals((await get('stopped')) ?? new Uint8Array())).toBe(true);
    expect((front.sent() - before) / whole.length).toBeLessThan(1.05);
    expect([written + reused, noChecksum]).toEqual([whole.length, expect.any(String)]);
    expect(await listUploads('stopped')).toEqual([]);
  });

  it('sends parts of a blob again if the blob had wrong bytes', async () => {
    const [bad, good] = [{ ...REGISTRY, name: 'bad' }, REGISTRY];
    const { written, noChecksum } = await send('spoiled', {
      openExtent: (extent, options) => {
        const [source] = options.rank([bad, good]);
        return openFrom(blobs, { source: source ?? good, spoil: source === bad })(extent, options);
      },
    });
    expect(whole.equals((await get('spoiled')) ?? new Uint8Array())).toBe(true);
    expect(written).toBeGreaterThan(whole.length);
    expect(noChecksum).toContain('twice');
  });

  it('is never completed with a blob that no source has right', async () => {
    const sending = send('wrong', { openExtent: openFrom(blobs, { spoil: true }) });
    await expect(sending).rejects.toMatchObject({ code: 'extent.wrong-digest' });
    expect(await get('wrong')).toBeUndefined();
  });

  it('is whole after answers of 503, a connection that breaks, and a completion without an answer', async () => {
    const faults: S3Fault[] = ['status503', 'cut'];
    front.watch = ({ kind, method, url }) => {
      if (kind === 'part') return faults.shift();
      const isEnd = method === 'POST' && url.includes('uploadId=');
      return isEnd && faults.length === 0 && ends++ === 0 ? 'lose-answer' : undefined;
    };
    let ends = 0;
    const { digest: sha256 } = await send('shaken', { lanes: 3 });
    expect([faults, ends > 0]).toEqual([[], true]);
    expect(whole.equals((await get('shaken')) ?? new Uint8Array())).toBe(true);
    expect(sha256).toBe(digestOf(whole));
  });

  it('has larger parts if the service allows only few, which is found out before bytes are sent', async () => {
    front.watch = ({ kind, url }) => {
      const [, number] = /partNumber=(\d+)/.exec(url) ?? [];
      return kind === 'part' && Number(number) > 2 ? 'status400' : undefined;
    };
    const before = front.sent();
    const { written } = await send('few', { fewParts: 2 });
    expect([written, front.sent() - before]).toEqual([whole.length, whole.length]);
    expect(whole.equals((await get('few')) ?? new Uint8Array())).toBe(true);
    expect(await listUploads('few')).toEqual([]);
  });

  it('ends with a code if the service lost it, and the next run begins another', async () => {
    await sendSome('lost', 2);
    const [id = ''] = (await listUploads('lost')) ?? [];
    front.watch = ({ kind }) => {
      if (kind === 'part')
        abort ??= openStoredObject(s3, { bucket: Bucket, key: 'lost' }, signal).abort(id);
      return undefined;
    };
    let abort: Promise<void> | undefined;
    await expect(send('lost')).rejects.toMatchObject({ code: 'object-store.upload-lost' });
    await abort;
    await send('lost');
    expect(whole.equals((await get('lost')) ?? new Uint8Array())).toBe(true);
  });

  it('is aborted if it has other bytes, and named if it belongs to another client', async () => {
    await sendSome('other', 1);
    const stranger = await openStoredObject(
      s3,
      { bucket: Bucket, key: 'other' },
      signal,
    ).beginUpload({});
    const small = makeLayout([MIB]);
    const other = digestLayout(small.layout);
    await send('other', {
      layout: small.layout,
      digest: other,
      metadata: { 'sealift-layout': other },
      openExtent: openFrom(small.blobs),
    });
    expect(warnings.filter((text) => text.includes('it is aborted'))).toHaveLength(1);
    expect(warnings.filter((text) => text.includes(stranger))).toHaveLength(1);
    expect(await listUploads('other')).toEqual([stranger]);
  });

  it('does not replace an object that appeared meanwhile', async () => {
    front.watch = ({ kind }) => {
      if (kind === 'part') arrival ??= put('taken', Buffer.from('of somebody else'));
      return undefined;
    };
    let arrival: Promise<unknown> | undefined;
    const beforeComplete = async (): Promise<void> => {
      await arrival;
    };
    const sending = send('taken', { beforeComplete });
    await expect(sending).rejects.toMatchObject({ code: 'object-store.changed' });
    expect(await get('taken')).toEqual(new Uint8Array(Buffer.from('of somebody else')));
  });
});
