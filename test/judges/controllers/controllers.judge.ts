import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { runProcess } from '../../../src/base/process.ts';
import {
  pickOffsets,
  serveControllerImage,
  type ControllerImage,
} from '../../support/controller-image.ts';
import { recordRequests, type Recorder } from '../../support/recorded-requests.ts';
import { findJudge } from '../find-judge.ts';

const emulator = findJudge('controllers', 'sushy-emulator');
const qemuImg = findJudge('controllers', 'qemu-img') ?? '';
const qemuIo = findJudge('controllers', 'qemu-io') ?? '';
const nbdkit = findJudge('controllers', 'nbdkit') ?? '';

const BLOCK = 64 << 10;

describe.skipIf(emulator === undefined)('a short URL', () => {
  let image: ControllerImage;
  let recorder: Recorder;
  let url: string;
  beforeAll(async () => {
    image = await serveControllerImage();
  });
  afterAll(async () => {
    expect(await image.close()).toBe(143);
  });
  beforeEach(async () => {
    recorder = await recordRequests(image.http);
    url = recorder.via(image.http);
  });
  afterEach(() => {
    recorder.close();
  });

  const listMethods = (): readonly string[] => [
    ...new Set(recorder.requests().map(({ method }) => method)),
  ];

  it('is inserted by a Redfish controller, which fetches the whole file once', async () => {
    const work = join(image.folder, 'emulator');
    await mkdir(work);
    const redfish = await startEmulator(work);
    try {
      const cd = `${redfish.url}/redfish/v1/Systems/${SYSTEM}/VirtualMedia/Cd`;
      const post = async (action: string, body: object): Promise<number> => {
        const answer = await fetch(`${cd}/Actions/VirtualMedia.${action}`, {
          method: 'POST',
          headers: { 'Content-Type': 'application/json' },
          body: JSON.stringify(body),
        });
        return answer.status;
      };
      expect(await post('InsertMedia', { Image: url })).toBe(204);
      const shown: unknown = await (await fetch(cd)).json();
      expect(shown).toMatchObject({ Inserted: true, ConnectedVia: 'URI', Image: url });
      const name = new URL(url).pathname.split('/').at(-1) ?? '';
      const files = await readdir(work, { recursive: true });
      const stored = files.find((file) => file.endsWith(name)) ?? files.join();
      expect(digest(await readFile(join(work, stored)))).toBe(digest(image.bytes));
      const [asked, ...others] = recorder.requests();
      expect(asked).toMatchObject({ method: 'GET', target: new URL(url).pathname });
      expect(asked?.headers['range']).toBeUndefined();
      expect(others).toEqual([]);
      expect(await post('EjectMedia', {})).toBe(204);
    } finally {
      await redfish.close();
    }
  });

  it("is an ISO to QEMU's drivers for http and https, which ask with HEAD and then for ranges", async () => {
    const whole = join(image.folder, 'whole.iso');
    const [plain, secure] = [join(image.folder, 'http.iso'), join(image.folder, 'https.iso')];
    await runProcess(qemuImg, ['compare', '-f', 'raw', '-F', 'raw', url, whole]);
    // One request at a time: several in parallel stop for good in QEMU 7.2 now and then.
    const convert = ['convert', '-m', '1', '--image-opts'];
    await runProcess(qemuImg, [...convert, describeDrive(url), plain]);
    await runProcess(qemuImg, [...convert, describeDrive(image.https), secure]);
    for (const file of [plain, secure]) {
      expect(digest(await readFile(file))).toBe(digest(image.bytes));
    }
    expect(listMethods()).toEqual(['HEAD', 'GET']);
    const gets = recorder.requests().filter(({ method }) => method === 'GET');
    expect(gets.length).toBeGreaterThan(10);
    for (const { headers } of gets) expect(headers['range']).toMatch(/^bytes=\d+-\d+$/);
  });

  it("is read by nbdkit's curl plugin, in random blocks and whole, with the same bytes", async () => {
    const offsets = pickOffsets(40, image.bytes.length - BLOCK);
    const reads = offsets.flatMap((offset) => ['-c', `'read -v ${offset} ${BLOCK}'`]);
    const read = async (command: string): Promise<string> => {
      const words = ['-r', '-U', '-', 'curl', url, '--run', command];
      return (await runProcess(nbdkit, words, { maxOutput: 1 << 27 })).stdout;
    };
    const blocks = parseDump(await read(`${qemuIo} -r -f raw ${reads.join(' ')} "$uri"`));
    expect(blocks.length).toBe(offsets.length);
    for (const [index, offset] of offsets.entries()) {
      const expected = image.bytes.subarray(offset, offset + BLOCK);
      expect(digest(blocks[index] ?? ''), `block at ${offset}`).toBe(digest(expected));
    }
    const copied = join(image.folder, 'nbd.iso');
    await read(`${findJudge('controllers', 'nbdcopy') ?? ''} "$uri" ${copied}`);
    expect(digest(await readFile(copied))).toBe(digest(image.bytes));
    expect(listMethods()).toEqual(['HEAD', 'GET']);
  });
});

const SYSTEM = '11111111-2222-4333-8444-555555555555';

/** The emulator on a free port; what it downloads is in the folder. */
async function startEmulator(
  work: string,
): Promise<{ readonly url: string; readonly close: () => Promise<void> }> {
  const config = join(work, 'emulator.conf');
  const systems = `[{'uuid': '${SYSTEM}', 'name': 'host', 'power_state': 'Off', 'nics': []}]`;
  await writeFile(
    config,
    [
      'SUSHY_EMULATOR_FAKE_DRIVER = True',
      "SUSHY_EMULATOR_LISTEN_IP = '127.0.0.1'",
      'SUSHY_EMULATOR_LISTEN_PORT = 0',
      `SUSHY_EMULATOR_STATE_DIR = '${work}'`,
      `SUSHY_EMULATOR_FAKE_SYSTEMS = ${systems}`,
    ].join('\n'),
  );
  const env = { ...process.env, TMPDIR: work, http_proxy: '', https_proxy: '' };
  const child = spawn(emulator ?? '', ['--config', config], { env, stdio: 'pipe' });
  const closed = new Promise<void>((resolve) => child.once('close', resolve));
  let printed = '';
  const url = await new Promise<string>((resolve, reject) => {
    const read = (piece: Buffer): void => {
      printed += piece.toString();
      const found = /Running on (http:\S+)/.exec(printed)?.[1];
      if (found !== undefined) resolve(found);
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    void closed.then(() => {
      reject(new Error(`the emulator ended: ${printed}`));
    });
  });
  return {
    url,
    async close() {
      child.kill('SIGTERM');
      await closed;
    },
  };
}

/** Options of QEMU for an image of a web server. */
function describeDrive(url: string): string {
  const scheme = new URL(url).protocol.slice(0, -1);
  const tls = scheme === 'https' ? ['file.sslverify=off'] : [];
  return ['driver=raw', `file.driver=${scheme}`, `file.url=${url}`, ...tls].join(',');
}

/** Blocks out of `qemu-io -c 'read -v'`: an offset, 16 bytes in hexadecimal, and text on each line. */
function parseDump(dump: string): readonly Buffer[] {
  const blocks: string[][] = [[]];
  for (const line of dump.split('\n')) {
    const [, bytes] = /^[0-9a-f]{8,}: {2}((?:[0-9a-f]{2} ){16})/.exec(line) ?? [];
    if (bytes !== undefined) blocks.at(-1)?.push(bytes);
    else if (blocks.at(-1)?.length !== 0) blocks.push([]);
  }
  return blocks
    .filter((lines) => lines.length > 0)
    .map((lines) => Buffer.from(lines.join('').replaceAll(' ', ''), 'hex'));
}

const digest = (bytes: Uint8Array | string): string =>
  createHash('sha256').update(bytes).digest('hex');
