import { execFileSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { stringify } from 'yaml';

/** A certificate of nobody, valid for a hundred years from 2026. */
export const TEST_CERTIFICATE = execFileSync(
  'openssl',
  [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'],
    ...['-keyout', '/dev/null', '-subj', '/CN=mirror.example', '-days', '36500'],
  ],
  { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] },
);

export const TEST_PULL_SECRET = '{"auths":{"quay.io":{"auth":"dXNlcjpzZWNyZXQtd29yZA=="}}}';

export const TEST_SSH_KEY =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0Y0pWyKuWmEWpYk6Pl5bG4V7gSTQeFn3mQp5b8Qm7H core@example.com';

/** The smallest configuration that passes. */
export const MINIMAL_INSTALLATION = {
  seedImage: 'quay.io/edge/seed:4.21.3',
  seedVersion: '4.21.3',
  installationDisk: '/dev/vda',
  pullSecret: TEST_PULL_SECRET,
};

/** Writes image-based-installation-config.yaml; what is undefined is left out. */
export async function writeInstallationConfig(
  directory: string,
  changes: Readonly<Record<string, unknown>> = {},
): Promise<string> {
  const path = join(directory, 'image-based-installation-config.yaml');
  await writeFile(path, stringify({ ...MINIMAL_INSTALLATION, ...changes }), { mode: 0o600 });
  return path;
}

export type ShownIgnition = {
  readonly ignition: { readonly version: string };
  readonly passwd: {
    readonly users: readonly { readonly name: string; readonly sshAuthorizedKeys: string[] }[];
  };
  readonly storage: {
    readonly files: readonly {
      readonly path: string;
      readonly mode: number;
      readonly contents: { readonly source: string };
    }[];
  };
  readonly systemd: {
    readonly units: readonly {
      readonly name: string;
      readonly enabled?: boolean;
      readonly contents: string;
    }[];
  };
};

/** The text of a file of an Ignition config. */
export function fileText({ storage }: ShownIgnition, path: string): string | undefined {
  const file = storage.files.find((each) => each.path === path);
  if (file === undefined) return undefined;
  const [, base64 = ''] = file.contents.source.split('base64,');
  return Buffer.from(base64, 'base64').toString('utf8');
}

/** Reads the embed area by its extent, as the kernel does: gzip, cpio "newc" and the one file in it. */
export async function readEmbedded(iso: string, offset: number, area = 262_144): Promise<string> {
  const bytes = (await readFile(iso)).subarray(offset, offset + area);
  const archive = gunzipSync(bytes.subarray(0, lengthOfGzip(bytes)));
  const nameSize = parseInt(archive.toString('latin1', 94, 102), 16);
  const size = parseInt(archive.toString('latin1', 54, 62), 16);
  const start = Math.ceil((110 + nameSize) / 4) * 4;
  return archive.toString('utf8', start, start + size);
}

/** Behind the archive the area is zero. */
function lengthOfGzip(bytes: Uint8Array): number {
  let end = bytes.length;
  while (end > 0 && bytes[end - 1] === 0) end--;
  return end + 4;
}
