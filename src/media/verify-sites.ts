import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Digest } from '../base/digest.ts';
import { ConfigError } from '../base/errors.ts';
import { readBounded, readList } from './published-digest.ts';
import type { VerifyOptions } from './verify-contents.ts';
import { verifyIso } from './verify.ts';

export type FolderVerification = {
  readonly state: 'whole' | 'damaged';
  /** File names, sorted. */
  readonly isos: readonly string[];
  readonly damaged: readonly { readonly iso: string; readonly problem: string }[];
};

/**
 * Each by its own proof and by the digest in `sites.json`. An ISO that the list lacks is from another run.
 *
 * @throws ConfigError `verify.no-list`; the signal's reason
 */
export async function verifySites(
  folder: string,
  options: VerifyOptions,
): Promise<FolderVerification> {
  const text = await readBounded(join(folder, 'sites.json'));
  const listed = text === undefined ? undefined : readList(text);
  if (!listed) throw noList(folder);
  const found = (await readdir(folder)).filter((name) => name.endsWith('.iso'));
  const isos = [...new Set([...listed.keys(), ...found])].sort();
  const damaged: { iso: string; problem: string }[] = [];
  for (const iso of isos) {
    options.signal.throwIfAborted();
    const problem = found.includes(iso)
      ? await explainIso(join(folder, iso), { sha256: listed.get(iso), listed }, options)
      : 'is in sites.json, and does not exist';
    if (problem !== undefined) damaged.push({ iso, problem });
  }
  return { state: damaged.length === 0 ? 'whole' : 'damaged', isos, damaged };
}

async function explainIso(
  path: string,
  { sha256, listed }: { readonly sha256: Digest | undefined; readonly listed: Listed },
  options: VerifyOptions,
): Promise<string | undefined> {
  if (sha256 === undefined) return 'is not in sites.json: it is from another run';
  const published = (): Promise<Digest> => Promise.resolve(sha256);
  const verified = await verifyIso(path, { ...options, published, isGiven: true }).catch(
    explainUnreadable,
  );
  if (typeof verified === 'string') return verified;
  const { state, problems } = verified;
  if (state === 'whole') return undefined;
  const [first, ...others] = problems;
  if (!first) return 'is not provable';
  if (others.length > 0 || first.expected !== sha256) return first.problem;
  const [same] = [...listed].find(([, digest]) => digest === first.found) ?? [];
  return same === undefined ? 'is whole, but from another run' : `has the bytes of ${same}`;
}

/** An ISO that cannot be read does not hide the others. */
function explainUnreadable(error: unknown): string {
  if (error instanceof ConfigError && error.code === 'iso.unreadable') return error.message;
  throw error;
}

type Listed = ReadonlyMap<string, Digest>;

const noList = (folder: string): ConfigError =>
  new ConfigError('verify.no-list', `${folder} has no sites.json with a digest of each ISO`, {
    expected: 'the folder that "sealift config-iso build --out" wrote',
    hint: 'name an ISO, or the folder of a run of config-iso build',
  });
