import semver from 'semver';

const HOST = /^(?:[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?|\[[0-9a-fA-F:.]+\])(?::\d{1,5})?$/;
const REPOSITORY = /^[a-z0-9]+(?:[._/-]+[a-z0-9]+)*$/;
const TAG = /^\w[\w.-]{0,127}$/;
const DIGEST = /^sha256:[0-9a-f]{64}$/;

/**
 * What is wrong with the shape of an image reference `registry/repository[:tag][@digest]`, or
 * undefined. Whether there is such an image only its registry knows.
 */
export function checkReferenceShape(text: string): string | undefined {
  const [name = '', digest, ...more] = text.split('@');
  if (more.length > 0 || (digest !== undefined && !DIGEST.test(digest))) {
    return `"${text}" must end in one digest: sha256: and 64 hex digits`;
  }
  const slash = Math.max(name.indexOf('/'), 0);
  if (!isRegistry(name.slice(0, slash))) {
    return `"${text}" must begin with its registry, as in registry.example.com/team/app`;
  }
  return checkRepository(name.slice(slash + 1), text);
}

/** A first part without dot or port is a name on some default registry, not a registry. */
const isRegistry = (host: string): boolean =>
  HOST.test(host) && (/[.:]/.test(host) || host === 'localhost');

function checkRepository(name: string, text: string): string | undefined {
  const [repository = '', ...colons] = name.split(':');
  if (!REPOSITORY.test(repository))
    return `"${repository}" is not a valid repository name in "${text}"`;
  if (colons.length === 0) return undefined;
  const tag = colons.join(':');
  return TAG.test(tag) ? undefined : `"${tag}" is not a valid tag in "${text}"`;
}

export const isHost = (text: string): boolean => HOST.test(text);

/** `X.Y` or `X.Y.Z[-pre]` as a full version; undefined for anything else. */
export function parseReleaseVersion(text: string): string | undefined {
  const full = /^\d+\.\d+$/.test(text) ? `${text}.0` : text;
  return semver.valid(full) === full || semver.parse(full)?.raw === full ? full : undefined;
}

const UNITS: Readonly<Record<string, number>> = {
  B: 1,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  TB: 1e12,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
};

/** `45GiB`, `4.7 GB` in bytes, rounded down. The schema has checked the shape. */
export function parseSize(text: string): number {
  const [, number = '0', unit = 'B'] = /^([\d.]+) ?([A-Za-z]+)$/.exec(text) ?? [];
  return Math.floor(Number(number) * (UNITS[unit] ?? 1));
}

/** Of an Ignition area: what CoreOS has in every build, up to what no reader takes for a root file system. */
export const isAreaSize = (size: number): boolean => size >= 2 ** 18 && size <= 2 ** 26;
