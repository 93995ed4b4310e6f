import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/**
 * The path of a judge's program in the cache that `install.sh` fills. A missing judge is an error in CI;
 * elsewhere undefined, with a line that names it.
 */
export function findJudge(judge: string, program = judge): string | undefined {
  const version = readFileSync(new URL(`${judge}/version`, import.meta.url), 'utf8').trim();
  const cache = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');
  const folder = join(cache, 'sealift-judges', `${judge}-${version}`);
  if (existsSync(join(folder, 'complete'))) return join(folder, 'bin', program);
  if (process.env['CI'] === 'true') throw new Error(`CI needs the judge ${judge} ${version}`);
  console.warn(`tests of judge ${judge} ${version} are skipped: it is not installed`);
  return undefined;
}

/** Where sealift differs from a judge on purpose: the name of the case, and the reason. */
export type Differences = Readonly<Record<string, string>>;

/** Compares answers, and remembers which differences were met. */
export type Comparer = {
  /** Requires that two answers are equal, or that the difference is listed under this name. */
  readonly requireAgreement: (name: string, ours: unknown, theirs: unknown) => void;
  /** Listed differences that no comparison met. */
  readonly listUnused: () => readonly string[];
};

export function createComparer(differences: Differences): Comparer {
  const used = new Set<string>();
  return {
    requireAgreement(name, ours, theirs) {
      const [one, other] = [JSON.stringify(ours), JSON.stringify(theirs)];
      if (one === other) return;
      if (Object.hasOwn(differences, name)) {
        used.add(name);
        return;
      }
      throw new Error(`${name}: sealift says ${one}, but the judge says ${other}`);
    },
    listUnused: () => Object.keys(differences).filter((name) => !used.has(name)),
  };
}
