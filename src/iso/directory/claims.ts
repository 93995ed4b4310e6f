import { IntegrityError } from '../../base/errors.ts';
import { SECTOR_SIZE } from '../extent.ts';
import type { ByteRange } from '../random-access.ts';

/** Which directory has which sectors: one reached twice, or inside another, makes paths without end. */
export type DirectoryClaims = {
  /**
   * Says that the directory at `path` has this extent.
   *
   * @throws IntegrityError `iso.looping-directory` when another has the same, `iso.overlapping-directory`
   * when it has a part of it, `iso.path-too-long`
   */
  readonly claim: (path: string, extent: ByteRange) => void;
};

/** Linux takes no longer ones (PATH_MAX). */
const MAX_PATH = 4096;

/** For a walk, which comes to each directory once. */
export function createClaims(): DirectoryClaims {
  const owners = new Map<number, { readonly path: string; readonly offset: number }>();
  return {
    claim(path, extent) {
      if (path.length > MAX_PATH) throw createLengthError(path);
      const owner = { path, offset: extent.offset };
      const first = extent.offset / SECTOR_SIZE;
      const count = Math.max(1, Math.ceil(extent.size / SECTOR_SIZE));
      for (let sector = first; sector < first + count; sector++) {
        const before = owners.get(sector);
        if (before) throw createConflict(owner, before);
        owners.set(sector, owner);
      }
    },
  };
}

/** For look-ups, which come to one path again and again. */
export function createRepeatableClaims(): DirectoryClaims {
  const claims = createClaims();
  const paths = new Map<number, string>();
  return {
    claim(path, extent) {
      if (paths.get(extent.offset) === path) return;
      claims.claim(path, extent);
      paths.set(extent.offset, path);
    },
  };
}

const createLengthError = (path: string): IntegrityError =>
  new IntegrityError(
    'iso.path-too-long',
    `directory ${path.slice(0, 100)}... has a path of more than ${MAX_PATH} characters`,
  );

type Owner = { readonly path: string; readonly offset: number };

function createConflict({ path, offset }: Owner, before: Owner): IntegrityError {
  return offset === before.offset
    ? new IntegrityError(
        'iso.looping-directory',
        `directory ${path} is the same extent as directory ${before.path}`,
      )
    : new IntegrityError(
        'iso.overlapping-directory',
        `directory ${path} overlaps directory ${before.path}`,
      );
}
