import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Digest } from '../base/digest.ts';
import { formatReadableJson, type Json } from '../base/canonical-json.ts';
import { readFileIfPresent, writeFileAtomic } from '../base/files.ts';

/**
 * What each stage made last time, one file a stage.
 *
 * An entry is removed before its stage starts and written after it ended, so a build killed in
 * between finds no entry and runs the stage again. There is no state that says "half done".
 */
export type StageStore = {
  /** The last result, when it was made from inputs with this fingerprint. */
  read: (stage: string, fingerprint: Digest) => Promise<{ readonly result: Json } | undefined>;
  remove: (stage: string) => Promise<void>;
  write: (stage: string, fingerprint: Digest, result: Json) => Promise<void>;
};

export function createStageStore(directory: string): StageStore {
  const pathOf = (stage: string): string => join(directory, `${stage.replaceAll(' ', '-')}.json`);
  return {
    async read(stage, fingerprint) {
      const text = (await readFileIfPresent(pathOf(stage)))?.toString('utf8');
      const entry = text === undefined ? undefined : parseEntry(text);
      return entry?.fingerprint === fingerprint ? { result: entry.result } : undefined;
    },
    remove: (stage) => rm(pathOf(stage), { force: true }),
    write: (stage, fingerprint, result) =>
      writeFileAtomic(pathOf(stage), formatReadableJson({ fingerprint, result })),
  };
}

/** undefined for a file that somebody damaged: the stage just runs again. */
function parseEntry(text: string): { fingerprint: string; result: Json } | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  if (!('fingerprint' in value) || typeof value.fingerprint !== 'string') return undefined;
  return 'result' in value
    ? { fingerprint: value.fingerprint, result: value.result as Json }
    : undefined;
}
