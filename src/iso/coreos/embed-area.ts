import { IntegrityError } from '../../base/errors.ts';
import type { ByteRange } from '../../base/random-access.ts';
import { formatReadableJson } from '../../base/text/json.ts';
import type { TypeOf } from '../../shape/shape.ts';
import type { TreeFile } from '../extent.ts';
import type { BasePatch } from '../lay-out/scan.ts';
import type { IsoFile } from '../read/node.ts';
import type { IsoImage } from '../read/open.ts';
import { IGNITION_INFO, readCoreosJson } from './json.ts';

/** The area in which the live system looks for its Ignition config. */
export type EmbedArea = {
  /** Path of the file that holds it, as `coreos/igninfo.json` writes it. */
  readonly file: string;
  /** Bytes from the start of the image. */
  readonly offset: number;
  /** Bytes. */
  readonly size: number;
  /** True if it is larger than in the builds of CoreOS. */
  readonly grown: boolean;
};

export type ReadableIso = Pick<IsoImage, 'find' | 'readFile' | 'readBytes'>;

/** Bytes of `images/ignition.img` in every CoreOS build. */
const EMBED_AREA_SIZE = 262_144;

/** Bytes; far above any known area, and below the size of a root file system. */
const MAX_EMBED_AREA_SIZE = 64 * 2 ** 20;

const DEFAULT_FILE = 'images/ignition.img';

/**
 * The embed area: the file that `coreos/igninfo.json` names, or a part of it; without that file
 * `images/ignition.img`. The `coreiso+` header of old images is not looked at, as CoreOS's own tool
 * does not either.
 *
 * @throws IntegrityError `iso.no-embed-area`, `iso.malformed-json`, `iso.out-of-bounds`
 */
export async function findEmbedArea(iso: ReadableIso): Promise<EmbedArea> {
  const info = await readIgnitionInfo(iso);
  const { file, extent } = await findContiguousFile(iso, info.file);
  const skip = info.offset ?? 0;
  const size = info.length ?? file.size - skip;
  if (size <= 0 || skip + size > file.size) {
    throw new IntegrityError(
      'iso.no-embed-area',
      `embed area of ${size} bytes at ${skip} is not inside ${info.file}, which has ${file.size} bytes`,
    );
  }
  if (size > MAX_EMBED_AREA_SIZE) {
    throw new IntegrityError(
      'iso.no-embed-area',
      `${info.file} has ${size} bytes for an Ignition config, which is too much for an embed area`,
      { expected: `at most ${MAX_EMBED_AREA_SIZE}`, found: String(size) },
    );
  }
  return { file: info.file, offset: extent.offset + skip, size, grown: size > EMBED_AREA_SIZE };
}

/** True for the error about an ISO without an embed area, such as a configuration ISO. */
export const lacksEmbedArea = (error: unknown): boolean =>
  error instanceof IntegrityError && error.code === 'iso.no-embed-area';

/** A file whose bytes are one run, so that an offset inside it is an offset of the image. */
export async function findContiguousFile(
  iso: ReadableIso,
  path: string,
): Promise<{ file: IsoFile; extent: ByteRange }> {
  const file = await iso.find(path);
  if (file?.kind !== 'file') {
    const found = file ? `a ${file.kind}` : 'absent';
    throw new IntegrityError('iso.no-embed-area', `file ${path} of the embed area is ${found}`);
  }
  const [first, ...others] = file.extents;
  let end = first ? first.offset + first.size : 0;
  for (const extent of others) {
    if (extent.offset !== end) {
      throw new IntegrityError('iso.no-embed-area', `file ${path} is not contiguous`);
    }
    end += extent.size;
  }
  return { file, extent: { offset: first?.offset ?? 0, size: file.size } };
}

const INFO_PATH = 'coreos/igninfo.json';

async function readIgnitionInfo(iso: ReadableIso): Promise<TypeOf<typeof IGNITION_INFO>> {
  const node = await iso.find(`/${INFO_PATH}`);
  if (!node) return { file: DEFAULT_FILE };
  return readCoreosJson(IGNITION_INFO, await iso.readFile(node, 65_536), INFO_PATH);
}

/** Patches of the base, or new files that replace files of the base. */
export type EmbedPlan = {
  readonly files: readonly TreeFile[];
  readonly patches: readonly BasePatch[];
  /** Size of the area in bytes, if it was enlarged. */
  readonly grownTo?: number;
  /** Place of the area: in a file of the new tree, or from the start of the image. */
  readonly place: EmbedPlace;
};

/** Bytes; `path` is absent if the area stays a part of the base. */
export type EmbedPlace = {
  readonly path?: string;
  readonly offset: number;
  readonly size: number;
};

export type EmbedContent = {
  readonly archive: Uint8Array;
  /** Bytes of the area if it can be enlarged; it then does not grow with the archive. */
  readonly size?: number;
};

/**
 * The archive at the start of the embed area, followed by zeros. If it is too large, the area is a whole file
 * and no size is given, a larger file replaces the area; readers find it by the same path or by
 * `coreos/igninfo.json`.
 *
 * @throws IntegrityError `base-iso.fixed-embed-area`, `iso.no-embed-area`
 */
export async function planEmbed(
  iso: IsoImage,
  area: EmbedArea,
  { archive, size: given }: EmbedContent,
): Promise<EmbedPlan> {
  requirePlausible(area);
  const node = await iso.find(area.file);
  const canGrow = node?.kind === 'file' && node.size === area.size;
  const wanted = canGrow ? Math.max(archive.length, given ?? 0) : archive.length;
  if (wanted <= area.size) {
    const { offset, size } = area;
    const bytes = new Uint8Array(size);
    bytes.set(archive);
    return { files: [], patches: [{ offset, bytes }], place: { offset, size } };
  }
  const size = given ?? sizeOfGrownArea(area.size, archive.length);
  const largest = canGrow ? size : area.size;
  if (archive.length > largest) {
    throw new IntegrityError(
      'base-iso.fixed-embed-area',
      `content length (${archive.length}) exceeds embed area size (${largest})`,
      {
        expected: `at most ${largest}`,
        found: String(archive.length),
        hint: canGrow
          ? 'choose a larger area with build.ignitionArea'
          : 'embed less: this area is a part of a file and cannot be enlarged',
      },
    );
  }
  const bytes = new Uint8Array(size);
  bytes.set(archive);
  const path = await resolvePath(iso, area.file);
  const files = [fileOf(path, bytes), ...(await growInfo(iso, bytes.length))];
  return { files, patches: [], grownTo: size, place: { path, offset: 0, size } };
}

/** Refuses a description that names the root file system or an initrd, which would be overwritten. */
function requirePlausible({ file, size }: EmbedArea): void {
  if (size <= MAX_EMBED_AREA_SIZE && !/^\/*images\/+pxeboot\//i.test(file)) return;
  throw new IntegrityError(
    'iso.no-embed-area',
    `${file} has ${size} bytes for an Ignition config, which is too much for an embed area`,
    { expected: `at most ${MAX_EMBED_AREA_SIZE}`, found: String(size) },
  );
}

/** The path with the names of the tree: a description may have ISO 9660 names, in upper case. */
async function resolvePath(iso: IsoImage, path: string): Promise<string> {
  let resolved = '';
  for (const part of path.split('/').filter((text) => text !== '')) {
    const node = await iso.find(`${resolved}/${part}`);
    resolved += `/${node?.name ?? part}`;
  }
  return resolved;
}

/** Grows by quarters, as the image service does, with one quarter free for its additions. */
function sizeOfGrownArea(size: number, needed: number): number {
  const quarter = Math.ceil(size / 4);
  return (1 + Math.ceil(needed / quarter)) * quarter;
}

async function growInfo(iso: IsoImage, length: number): Promise<readonly TreeFile[]> {
  const path = `/${INFO_PATH}`;
  const info = await iso.find(path);
  if (!info) return [];
  const json = readCoreosJson(IGNITION_INFO, await iso.readFile(info, 65_536), INFO_PATH);
  const text = formatReadableJson({ ...json, length });
  return [fileOf(await resolvePath(iso, path), Buffer.from(text))];
}

const fileOf = (path: string, bytes: Uint8Array): TreeFile => ({
  path,
  content: { kind: 'bytes', bytes },
});
