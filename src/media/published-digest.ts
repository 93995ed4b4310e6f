import { basename, dirname } from 'node:path';
import { digestFromHex, isDigest, type Digest, isDigestHex } from '../base/digest.ts';
import { sizeOf } from '../base/disk/files.ts';
import { readRegularFile } from '../base/disk/open-file.ts';
import { ConfigError, SealiftError } from '../base/errors.ts';
import { isObject } from '../base/lists.ts';
import { findJsonExcess } from '../shape/json-text.ts';

/*
 * Owns the digests that are published beside an ISO: a `.sha256` file, the report of a build, the list of a
 * run of configuration ISOs. They serve media without a proof.
 */

/** Far larger than any checksum, report or list of sites. */
const MOST_BYTES = 64 << 20;

/**
 * Undefined if no file names the digest. A checksum of another file name is reported and not taken: the ISO
 * got another name since, or another ISO got this one.
 */
export async function findPublishedDigest(
  iso: string,
  warn: (message: string) => void,
): Promise<Digest | undefined> {
  const name = basename(iso);
  const readers: readonly (readonly [string, (text: string) => Digest | undefined])[] = [
    [`${iso}.sha256`, (text) => ownChecksum(name, text, warn)],
    [`${iso}.report.json`, readReport],
    [`${dirname(iso)}/sites.json`, (text) => readList(text)?.get(name)],
  ];
  for (const [from, parse] of readers) {
    const digest = await readPublished(from, parse);
    if (digest) return digest;
  }
  return undefined;
}

function ownChecksum(
  name: string,
  text: string,
  warn: (message: string) => void,
): Digest | undefined {
  const sums = parseChecksums(text);
  const [other] = sums.keys();
  if (other !== undefined && !sums.has(name)) {
    warn(
      `${name}.sha256 has the checksum of "${other}", not of "${name}": if this ISO had that name, give it with --sha256`,
    );
  }
  return sums.get(name);
}

/**
 * Reads 64 hex digits, with or without `sha256:`, or a file in the form that `sha256sum` writes. A file with
 * one line serves an ISO of any name.
 *
 * @throws ConfigError `verify.no-digest`
 */
export async function readGivenDigest(
  given: string,
  { iso, path }: { readonly iso: string; readonly path: string },
): Promise<Digest> {
  const text = given.replace(/^sha256:/, '').toLowerCase();
  if (isDigestHex(text)) return digestFromHex(text);
  const content = await readBounded(path);
  const sums = parseChecksums(content ?? '');
  const [only] = sums.size === 1 ? sums.values() : [];
  const digest = sums.get(basename(iso)) ?? only;
  if (digest) return digest;
  throw new ConfigError('verify.no-digest', `${given} names no SHA-256 of ${basename(iso)}`, {
    expected: '64 hex digits, or a file as sha256sum writes it',
    found: content === undefined ? 'no such file' : `${sums.size} checksums of other files`,
  });
}

/** Undefined if the file does not exist. */
export async function readBounded(path: string): Promise<string | undefined> {
  const size = await sizeOf(path);
  if (size <= MOST_BYTES) return (await readRegularFile(path))?.toString('utf8');
  throw new ConfigError('verify.no-digest', `${path} is too large for a list of digests`, {
    expected: `at most ${MOST_BYTES} bytes`,
    found: String(size),
  });
}

/** A file beside an ISO that is not a list of digests says nothing about the ISO. */
function ignoreRefused(error: unknown): undefined {
  if (error instanceof SealiftError) return undefined;
  throw error;
}

async function readPublished(
  path: string,
  parse: (text: string) => Digest | undefined,
): Promise<Digest | undefined> {
  const text = await readBounded(path).catch(ignoreRefused);
  return text === undefined ? undefined : parse(text);
}

/** Digests by file name. */
function parseChecksums(text: string): ReadonlyMap<string, Digest> {
  const sums = new Map<string, Digest>();
  for (const [, hex = '', path = ''] of text.matchAll(/^\\?([0-9a-fA-F]{64}) [ *](.+?)\r?$/gm)) {
    const [name, digest] = [basename(path), digestFromHex(hex.toLowerCase())];
    if ((sums.get(name) ?? digest) !== digest) {
      throw new ConfigError('verify.no-digest', `the checksums name two digests of ${name}`, {
        hint: 'keep the right one, or give it with --sha256',
      });
    }
    sums.set(name, digest);
  }
  return sums;
}

function readReport(text: string): Digest | undefined {
  const digest = parseObjectOrNothing(text)['digest'];
  return typeof digest === 'string' && isDigest(digest) ? digest : undefined;
}

/** Undefined if an entry is not as we write it. */
export function readList(text: string): ReadonlyMap<string, Digest> | undefined {
  const { sites } = parseObjectOrNothing(text);
  const listed = new Map<string, Digest>();
  for (const site of Array.isArray(sites) ? (sites as readonly unknown[]) : []) {
    const { iso, sha256 } = isObject(site) ? site : {};
    if (typeof iso !== 'string' || typeof sha256 !== 'string' || listed.has(iso)) return undefined;
    if (!isDigestHex(sha256)) return undefined;
    listed.set(iso, digestFromHex(sha256));
  }
  return listed.size > 0 ? listed : undefined;
}

/** A list of 100,000 sites has some 400,000 values. */
const BOUNDS = { values: 2_000_000, depth: 64 };

function parseObjectOrNothing(text: string): Readonly<Record<string, unknown>> {
  try {
    if (findJsonExcess(Buffer.from(text), BOUNDS) !== undefined) return {};
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}
