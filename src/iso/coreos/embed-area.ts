import { IntegrityError } from '../../base/errors.ts';
import { parseJsonObjectOfCoreosJson, readOptionalInteger } from '../../shape/go-json.ts';
import type { IsoFile } from '../iso-node.ts';
import type { IsoImage } from '../open-iso.ts';
import type { ByteRange } from '../../base/random-access.ts';

/** Where the live system looks for its Ignition config. */
export type EmbedArea = {
  /** Path of the file that holds it, as `coreos/igninfo.json` writes it. */
  readonly file: string;
  /** Bytes from the start of the image. */
  readonly offset: number;
  /** Bytes. */
  readonly size: number;
  /** Whether it is larger than the one every build of CoreOS has. */
  readonly grown: boolean;
};

/** What is read of an image to find its areas. */
export type ReadableIso = Pick<IsoImage, 'find' | 'readFile' | 'readBytes'>;

/** Bytes of `images/ignition.img` in every CoreOS build. */
const EMBED_AREA_SIZE = 262_144;

/** Bytes; far above any that was made, and below what would be a root file system. */
export const MAX_EMBED_AREA_SIZE = 64 * 2 ** 20;

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

/**
 * A file whose bytes stand in one run, so that an offset inside it is an offset of the image.
 *
 * @throws IntegrityError `iso.no-embed-area`
 */
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

type IgnitionInfo = {
  readonly file: string;
  readonly offset: number | undefined;
  readonly length: number | undefined;
};

async function readIgnitionInfo(iso: ReadableIso): Promise<IgnitionInfo> {
  const node = await iso.find('/coreos/igninfo.json');
  if (!node) return { file: DEFAULT_FILE, offset: undefined, length: undefined };
  const path = 'coreos/igninfo.json';
  const info = parseJsonObjectOfCoreosJson(await iso.readFile(node, 65_536), path);
  if (typeof info['file'] !== 'string') {
    throw new IntegrityError('iso.malformed-json', `${path} has no text at "file"`);
  }
  return {
    file: info['file'],
    offset: readOptionalInteger(info, 'offset', path),
    length: readOptionalInteger(info, 'length', path),
  };
}
