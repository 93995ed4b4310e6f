import { createHash, randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { runProcess } from '../../src/base/process.ts';
import { startSealift } from './child.ts';
import { makeCoreosIso } from './iso.ts';
import { API, PULL_SECRET, SSH_KEY } from './service.ts';
import { ONE_ADDRESS_LIMITS } from './serve-limits.ts';

/* Owns an image that a served InfraEnv has, for clients that read it as management controllers do. */

export type ControllerImage = {
  /** Short URLs of the image, over HTTP and HTTPS; nothing vouches for the certificate. */
  readonly http: string;
  readonly https: string;
  /** All bytes, as curl has them from a third form of URL. */
  readonly bytes: Buffer;
  /** Folder that is removed at the end. */
  readonly folder: string;
  readonly close: () => Promise<number | null>;
};

const VERSION = '4.21.3';

/** Bytes that do not repeat: a range from another place differs. Not a multiple of a block of 64 KiB. */
const PAYLOAD = (12 << 20) + 6789;

/** Serves a customised ISO with the built program, as a process of its own. */
export async function serveControllerImage(): Promise<ControllerImage> {
  const folder = await mkdtemp(join(tmpdir(), 'controller-image-'));
  await writeStore(folder);
  const child = startSealift(
    [
      ...['serve', '--listen', '127.0.0.1:0', '--listen-http', '127.0.0.1:0'],
      ...['--tls-cert', 'tls.crt', '--tls-key', 'tls.key'],
      ...['--data', 'data', '--store', 'store', '--key', 'file:serve.key', ...ONE_ADDRESS_LIMITS],
    ],
    { cwd: folder },
  );
  const origins = await readOrigins(child.process.stderr);
  const curl = async (...args: readonly string[]): Promise<string> =>
    (await runProcess('curl', ['-sS', '--fail-with-body', '-k', ...args])).stdout;
  const ask = async (path: string, body?: object): Promise<Readonly<Record<string, string>>> => {
    const sent = body && ['-H', 'Content-Type: application/json', '-d', JSON.stringify(body)];
    const text = await curl(`${origins.https}${API}/v2/${path}`, ...(sent ?? []));
    return JSON.parse(text) as Record<string, string>;
  };
  const { id = '' } = await ask('infra-envs', {
    ...{ name: 'edge', openshift_version: VERSION, image_type: 'disconnected-iso' },
    ...{ pull_secret: PULL_SECRET, ssh_authorized_key: SSH_KEY },
    kernel_arguments: [{ operation: 'append', value: 'a.b=c' }],
  });
  const urls = await ask(`infra-envs/${id}/downloads/image-url`);
  const path = new URL(urls['url'] ?? '').pathname;
  await curl('-o', join(folder, 'whole.iso'), urls['long_url'] ?? '');
  return {
    http: origins.http + path,
    https: origins.https + path,
    bytes: await readFile(join(folder, 'whole.iso')),
    folder,
    async close() {
      child.process.kill('SIGTERM');
      const { code } = await child.ended;
      await rm(folder, { recursive: true, force: true });
      return code;
    },
  };
}

async function writeStore(folder: string): Promise<void> {
  await mkdir(join(folder, 'store'));
  const iso = await makeCoreosIso(folder, { files: { payload: randomBytes(PAYLOAD) } });
  await rename(iso, join(folder, 'store/rhcos.iso'));
  const image = { openshift_version: VERSION, cpu_architecture: 'x86_64', url: 'rhcos.iso' };
  await writeFile(join(folder, 'store/os-images.json'), JSON.stringify([image]));
  await writeFile(join(folder, 'serve.key'), 'a key that has 32 bytes or more of text');
  const kind = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  const subject = ['-subj', '/CN=controllers', '-addext', 'subjectAltName=IP:127.0.0.1'];
  const files = ['-keyout', join(folder, 'tls.key'), '-out', join(folder, 'tls.crt')];
  await runProcess('openssl', ['req', ...kind, ...files, ...subject]);
}

/** The addresses that `sealift serve` prints once it listens on both. */
function readOrigins(
  printed: Readable | null,
): Promise<{ readonly http: string; readonly https: string }> {
  return new Promise((resolve, reject) => {
    let text = '';
    printed?.on('data', (piece: Buffer) => {
      text += piece.toString();
      const [http, https] = ['http', 'https'].map(
        (scheme) => new RegExp(`serving on (${scheme}://[^\\s;]+)`).exec(text)?.[1],
      );
      if (http !== undefined && https !== undefined) resolve({ http, https });
    });
    printed?.on('close', () => {
      reject(new Error(`sealift serve ended: ${text}`));
    });
  });
}

/** Offsets up to `last`, in an order that every run has. */
export const pickOffsets = (count: number, last: number): readonly number[] =>
  Array.from({ length: count }, (_, index) => {
    const drawn = createHash('sha256').update(`offset ${index}`).digest().readUInt32BE();
    return drawn % (last + 1);
  });
