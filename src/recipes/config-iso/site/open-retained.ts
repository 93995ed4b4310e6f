import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { formatCanonicalJson } from '../../../base/canonical-json.ts';
import { digestOf } from '../../../base/digest.ts';
import { ConfigError } from '../../../base/errors.ts';
import { hasFile } from '../../../base/files.ts';
import type { RetainedIdentity } from '../../../openshift/image-based/identity/retained/retain-identity.ts';
import { readRetained } from '../../../openshift/image-based/identity/retained/read-retained.ts';

/** What is kept of one site; the digest is of all of it, and tells nothing. */
export type RetainedSite = { readonly identity: RetainedIdentity; readonly digest: string };

/** Gives what an earlier producer left of a site, if anything. */
export type FindRetained = (name: string) => Promise<RetainedSite | undefined>;

type OpenedRetained = {
  readonly find: FindRetained;
  /** Folders of something that is kept, but of no site. */
  readonly strangers: readonly string[];
};

/**
 * A directory with `tls/` or `cluster-configuration/` is that of the only site; any other has a
 * folder for each site that something is kept of.
 *
 * @throws ConfigError `retained.ambiguous`, `retained.empty`; the function those of `readRetained`
 */
export async function openRetained(dir: string, names: readonly string[]): Promise<OpenedRetained> {
  if (await isOfOneSite(dir)) {
    if (names.length === 1) return { find: () => read(dir), strangers: [] };
    throw new ConfigError('retained.ambiguous', `${dir} is of one site, and there are more`, {
      found: `${names.length} sites`,
      hint: 'give a folder that has a folder for each site',
    });
  }
  const known = new Set<string>();
  for (const name of names) if (await isOfOneSite(join(dir, name))) known.add(name);
  if (known.size > 0) {
    const find: FindRetained = async (name) =>
      known.has(name) ? read(join(dir, name)) : undefined;
    return { find, strangers: await listStrangers(dir, known) };
  }
  throw new ConfigError('retained.empty', `${dir} keeps nothing of any site`, {
    expected: `tls/ or cluster-configuration/ in it, or in folders named like the sites`,
    hint: 'check what --retain-from names',
  });
}

/** A folder whose name is misspelt would let its site have new keys. */
async function listStrangers(dir: string, known: ReadonlySet<string>): Promise<string[]> {
  const strangers: string[] = [];
  for (const name of (await readdir(dir)).sort()) {
    if (!known.has(name) && (await isOfOneSite(join(dir, name)))) strangers.push(name);
  }
  return strangers;
}

const isOfOneSite = async (dir: string): Promise<boolean> =>
  (await hasFile(join(dir, 'tls'))) || (await hasFile(join(dir, 'cluster-configuration')));

async function read(dir: string): Promise<RetainedSite> {
  const identity = await readRetained(dir);
  return { identity, digest: digestOf(formatCanonicalJson(identity)) };
}
