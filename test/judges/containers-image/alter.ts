import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';

/* Changes media with foreign programs alone: xorriso for files, cpio and gzip for archives of Ignition. */

type Contents = { source: string; compression?: string };
type ConfigFile = { path: string; mode?: number; overwrite?: boolean; contents?: Contents };
type ConfigUnit = { name: string; enabled?: boolean; contents?: string };

/** An Ignition config, as far as the changes reach. */
export type Config = {
  ignition: { version: string };
  storage: { files: ConfigFile[] };
  systemd?: { units: ConfigUnit[] };
};

export type Change = {
  /** Contents by path; null takes a file or a directory away. */
  readonly files?: Readonly<Record<string, string | Uint8Array | null>>;
  /** Edits the config of the system. */
  readonly bootstrap?: (config: Config) => void;
  /** Edits the config in the embed area. */
  readonly embedded?: (config: Config) => void;
  /** Writes into the finished ISO. */
  readonly bytes?: (iso: Buffer) => void;
};

export const BOOTSTRAP = '/images/bootstrap-appliance.img';
const EMBEDDED = '/images/ignition.img';
const BOOTSTRAP_MEMBER = 'usr/lib/ignition/base.d/99-bootstrap.ign';

/** Makes `to` from `from`, with these changes and no other. */
export function alterMedium(from: string, to: string, change: Change): void {
  const { bootstrap, embedded, bytes } = change;
  const files = {
    ...(bootstrap && { [BOOTSTRAP]: repack(from, bootstrap) }),
    ...(embedded && { [EMBEDDED]: reembed(from, embedded) }),
    ...change.files,
  };
  if (Object.keys(files).length === 0) copyFileSync(from, to);
  else remaster(from, to, files);
  if (!bytes) return;
  const iso = readFileSync(to);
  bytes(iso);
  writeFileSync(to, iso);
}

/** Writes the tree again with changed files, and every boot record as it was. */
function remaster(from: string, to: string, files: NonNullable<Change['files']>): void {
  inDirectory((directory) => {
    const commands = Object.entries(files).flatMap(([path, content], at) => {
      if (content === null) return ['-rm_r', path, '--'];
      const local = join(directory, String(at));
      writeFileSync(local, content);
      return ['-map', local, path];
    });
    rmSync(to, { force: true });
    const boot = ['-boot_image', 'any', 'replay'];
    xorriso(...['-indev', from, '-outdev', to, ...boot, ...commands, '-commit']);
  });
}

export const readFromMedium = (iso: string, path: string): Buffer =>
  inDirectory((directory) => {
    const local = join(directory, 'file');
    xorriso('-osirrox', 'on', '-indev', iso, '-extract', path, local);
    return readFileSync(local);
  });

const xorriso = (...args: readonly string[]): void => {
  execFileSync('xorriso', ['-abort_on', 'FAILURE', ...args], { stdio: 'pipe' });
};

export const readBootstrap = (iso: string): Config => readMember(readFromMedium(iso, BOOTSTRAP));
export const readEmbedded = (iso: string): Config => readMember(readFromMedium(iso, EMBEDDED));

/** The only file of a gzipped archive, which zeros may follow. */
function readMember(archive: Buffer): Config {
  const input = gunzipSync(archive);
  const text = execFileSync('cpio', ['-i', '--to-stdout', '--quiet'], { input, stdio: 'pipe' });
  return JSON.parse(text.toString('utf8')) as Config;
}

function repack(iso: string, edit: (config: Config) => void): Buffer {
  const config = readBootstrap(iso);
  edit(config);
  const size = readFromMedium(iso, BOOTSTRAP).length;
  return pad(packMember(BOOTSTRAP_MEMBER, JSON.stringify(config)), size);
}

function reembed(iso: string, edit: (config: Config) => void): Buffer {
  const config = readEmbedded(iso);
  edit(config);
  return embed(iso, packMember('config.ign', JSON.stringify(config)));
}

/** Contents for the embed area, as long as the area. */
export const embed = (iso: string, archive: Uint8Array): Buffer =>
  pad(archive, readFromMedium(iso, EMBEDDED).length);

/** At least `size` bytes: an initrd may end in zeros. */
const pad = (bytes: Uint8Array, size: number): Buffer =>
  Buffer.concat([bytes, Buffer.alloc(Math.max(0, size - bytes.length))]);

/** A gzipped archive of a file and the directories above it. */
export const packMember = (name: string, text: string): Buffer =>
  inDirectory((cwd) => {
    const parts = name.split('/');
    const names = parts.map((_, at) => parts.slice(0, at + 1).join('/'));
    mkdirSync(dirname(join(cwd, name)), { recursive: true });
    writeFileSync(join(cwd, name), text);
    const args = ['-o', '-H', 'newc', '--quiet', '--reproducible', '--owner=0:0'];
    const archive = execFileSync('cpio', args, { cwd, input: `${names.join('\n')}\n` });
    return gzipSync(archive, { level: 9 });
  });

function inDirectory<Made>(make: (directory: string) => Made): Made {
  const directory = mkdtempSync(join(tmpdir(), 'sealift-alter-'));
  try {
    return make(directory);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** The text of a file of a config. */
export function textOf(config: Config, path: string): string {
  const { source = '' } = fileOf(config, path).contents ?? {};
  const [head = '', body = ''] = source.split(/,(.*)/s);
  return head.endsWith(';base64')
    ? Buffer.from(body, 'base64').toString('utf8')
    : decodeURIComponent(body);
}

export function fileOf({ storage }: Config, path: string): ConfigFile {
  const file = storage.files.find((one) => one.path === path);
  if (file) return file;
  throw new Error(`the config has no file ${path}`);
}

export function unitOf({ systemd }: Config, name: string): ConfigUnit {
  const unit = systemd?.units.find((one) => one.name === name);
  if (unit) return unit;
  throw new Error(`the config has no unit ${name}`);
}

/** Replaces a text that must be there. */
export function replaceIn(
  config: Config,
  path: string,
  [from, to]: readonly [string, string],
): void {
  const text = textOf(config, path);
  fileOf(config, path).contents = encodeText(replaceText(text, [from, to]));
}

export function replaceText(text: string, [from, to]: readonly [string, string]): string {
  if (!text.includes(from)) throw new Error(`no "${from}" in: ${text}`);
  return text.replaceAll(from, to);
}

export const encodeText = (text: string): Contents => ({
  source: `data:;base64,${Buffer.from(text).toString('base64')}`,
});
