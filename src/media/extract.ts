import { createHash } from 'node:crypto';
import { rm, type FileHandle } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { Readable } from 'node:stream';
import { decodeInThread } from '../base/decode/threads.ts';
import { publishOnce } from '../base/disk/claim-output.ts';
import { explainWriteError } from '../base/disk/disk-errors.ts';
import { digestFile, writeWhole } from '../base/disk/files.ts';
import { IntegrityError, UsageError } from '../base/errors.ts';
import { openRandomAccess } from '../base/random-access.ts';
import {
  editKargs,
  type KargsFile,
  type IsoImage,
  type IsoNode,
  malformedLive,
  type MinimalRecipe,
  openIso,
  parseMinimalRecipe,
  readKargAreas,
  readKargsFile,
} from '../iso/index.ts';
import { publishChecksum } from '../outputs/file.ts';
import { namesBeside } from '../outputs/place.ts';
import { planEditedKargs, readLiveAreas } from './areas.ts';
import { INDEX_PATH } from './media-index.ts';

/* Parts of a live ISO of CoreOS as files: kernel, initramfs and root file system, or the minimal ISO. */

export type ExtractOptions = {
  readonly directory: string;
  /** Prefix of the file names. */
  readonly stem: string;
  readonly force: boolean;
  readonly signal: AbortSignal;
  readonly onProgress: (bytes: number, total?: number) => void;
};

export type ExtractedFile = { readonly path: string; readonly size: number };

const PXE = '/images/pxeboot';

/**
 * For machines that boot from the network.
 *
 * @throws UsageError `extract.own-medium`, `extract.not-coreos`, `output.exists`
 */
export async function extractPxe(
  iso: IsoImage,
  options: ExtractOptions,
  wanted: (name: string) => boolean = () => true,
): Promise<readonly ExtractedFile[]> {
  await requireForeign(iso);
  const folder = await iso.find(PXE);
  const nodes = folder?.kind === 'directory' ? await iso.children(folder) : [];
  const files = nodes.filter((node) => node.kind === 'file' && wanted(node.name));
  if (files.length === 0) {
    throw new UsageError('extract.not-coreos', `${iso.path} has no files in ${PXE}`, {
      hint: 'give a live ISO of CoreOS',
    });
  }
  const extracted: ExtractedFile[] = [];
  for (const node of files) {
    const path = join(options.directory, `${options.stem}-${node.name.toLowerCase()}`);
    extracted.push(
      await writeNew(path, options, (file) => copyNode(iso, node, { file, ...options })),
    );
  }
  return extracted;
}

/** Refuses a medium of ours: its registry is read from the mounted ISO, which a network boot lacks. */
async function requireForeign(iso: IsoImage): Promise<void> {
  if ((await iso.find(INDEX_PATH)) === undefined) return;
  throw new UsageError(
    'extract.own-medium',
    `${iso.path} serves its registry from the mounted ISO, and cannot boot without it`,
    { expected: 'a live ISO of CoreOS', hint: 'boot the whole ISO, for instance as virtual media' },
  );
}

type Target = Pick<ExtractOptions, 'signal' | 'onProgress'> & { readonly file: FileHandle };

async function copyNode(
  iso: IsoImage,
  node: IsoNode,
  { file, signal, onProgress }: Target,
): Promise<number> {
  let done = 0;
  for await (const piece of iso.stream(node)) {
    signal.throwIfAborted();
    await writeWhole(file, piece as Uint8Array, done);
    done += (piece as Uint8Array).length;
    onProgress(done, node.kind === 'file' ? node.size : undefined);
  }
  return done;
}

async function writeNew(
  path: string,
  { force }: ExtractOptions,
  fill: (file: FileHandle, aside: string) => Promise<number>,
): Promise<ExtractedFile> {
  try {
    return { path, size: await publishOnce({ path }, { force, mode: 0o644 }, fill) };
  } catch (error) {
    throw explainWriteError(error, path);
  }
}

const RECIPE_LIMIT = 1 << 20;

/**
 * Extracts the image without its root file system, which it fetches when it boots, and its checksum: the
 * image has the bytes that coreos-installer writes, and no room for a proof.
 *
 * @param rootfsUrl address of the root file system; if absent, a kernel argument must give it later
 * @throws UsageError `extract.own-medium`, `extract.customised`, `extract.no-recipe`,
 * `extract.rootfs-url`, `kargs.special`; IntegrityError `miniso.malformed`, `miniso.wrong-digest`
 */
export async function extractMinimal(
  iso: IsoImage,
  options: ExtractOptions,
  rootfsUrl?: string,
): Promise<ExtractedFile> {
  await requireForeign(iso);
  const node = await iso.find('/coreos/miniso.dat');
  if (node?.kind !== 'file') {
    throw new UsageError(
      'extract.no-recipe',
      'this ISO image does not support extracting a minimal ISO',
    );
  }
  if (rootfsUrl !== undefined && /\s/.test(rootfsUrl)) {
    throw new UsageError('extract.rootfs-url', `forbidden whitespace found in '${rootfsUrl}'`);
  }
  const { embed, kargs } = await readLiveAreas(iso);
  if (embed.bytes.some((byte) => byte !== 0) || kargs?.text !== kargs?.default) {
    throw new UsageError(
      'extract.customised',
      'cannot operate on ISO with embedded customizations',
      {
        hint: 'reset it with "sealift customize ISO --reset --in-place"',
      },
    );
  }
  const recipe = parseMinimalRecipe(await iso.readFile(node, RECIPE_LIMIT));
  const path = join(options.directory, `${options.stem}-minimal.iso`);
  const written = await writeNew(path, options, async (file, aside) => {
    const size = await unpack(iso, recipe, { file, ...options });
    await changeArguments(file, aside, rootfsUrl);
    await rm(namesBeside(path).checksum, { force: true }); // of an earlier ISO
    return size;
  });
  await publishChecksum(path, await digestFile(path, options.signal));
  return written;
}

/** Alternates unpacked bytes and runs from the full image; the remaining bytes are at the end. */
async function unpack(
  iso: IsoImage,
  { runs, digest, packed }: MinimalRecipe,
  { file, signal, onProgress }: Target,
): Promise<number> {
  const unpacked = await gather(packed, signal);
  const hash = createHash('sha256');
  let [end, taken] = [0, 0];
  const put = async (bytes: Uint8Array): Promise<void> => {
    hash.update(bytes);
    await writeWhole(file, bytes, end);
    end += bytes.length;
    onProgress(end);
  };
  const putUnpacked = async (size: number): Promise<void> => {
    if (size < 0 || taken + size > unpacked.length) throw malformedLive('has runs that overlap');
    await put(unpacked.subarray(taken, (taken += size)));
  };
  for (const { minimal, full, size } of runs) {
    await putUnpacked(minimal - end);
    for (let done = 0; done < size; done += PIECE) {
      signal.throwIfAborted();
      await put(await iso.readBytes(full + done, Math.min(PIECE, size - done)));
    }
  }
  await putUnpacked(unpacked.length - taken);
  const found = hash.digest('hex');
  if (found === digest) return end;
  throw new IntegrityError(
    'miniso.wrong-digest',
    'the minimal ISO does not have the digest that its recipe names',
    { expected: digest, found, hint: 'download the live ISO again from its publisher' },
  );
}

/** Far larger than the directories and boot images of any live ISO. */
const LARGEST_REST = 256 * 1024 * 1024;

async function gather(packed: Uint8Array, signal: AbortSignal): Promise<Buffer> {
  const stream = Readable.from([packed], { objectMode: false });
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of decodeInThread('xz', stream, { signal })) {
    size += piece.length;
    if (size > LARGEST_REST) throw malformedLive(`unpacks to more than ${LARGEST_REST} bytes`);
    pieces.push(Buffer.from(piece));
  }
  return Buffer.concat(pieces);
}

const PIECE = 1 << 20;
const LIVEISO = /(?:^| )(coreos\.liveiso=\S+)/;

/** Removes the wait for the volume, and adds the rootfs address. The default arguments have neither. */
async function changeArguments(
  file: FileHandle,
  path: string,
  rootfsUrl: string | undefined,
): Promise<void> {
  const image = await openRandomAccess(path);
  try {
    const iso = await openIso(image);
    const kargs = await readKargAreas(iso);
    const [, liveiso] = LIVEISO.exec(kargs.text) ?? [];
    if (liveiso === undefined) throw malformedLive('makes an ISO without coreos.liveiso=');
    const text = editKargs(kargs.text, { remove: [liveiso], append: [] });
    const append = rootfsUrl === undefined ? [] : [`coreos.live.rootfs_url=${rootfsUrl}`];
    for (const { offset, bytes } of planEditedKargs({ ...kargs, default: text }, { append }))
      await writeWhole(file, bytes, offset);
    await writeDefault(iso, file, text);
  } finally {
    await image.close();
  }
}

/** Writes the default arguments into the space of their file, and spaces after them. */
async function writeDefault(iso: IsoImage, file: FileHandle, text: string): Promise<void> {
  const node = await iso.find('/coreos/kargs.json');
  if (node?.kind !== 'file') return;
  const json = await readKargsFile(iso, node);
  const listed = Buffer.from(formatKargsInfo({ ...json, default: text }).padEnd(node.size));
  if (listed.length > node.size) throw malformedLive('makes an ISO whose arguments do not fit');
  await writeWhole(file, listed, node.extents[0]?.offset ?? 0);
}

/** As coreos-installer does: its order of members, and no line break at the end. */
const formatKargsInfo = (info: KargsFile): string => {
  const { default: text, files, size, ...others } = info;
  const places = files.map(({ path, offset, pad, end, ...rest }) => ({
    path,
    offset,
    pad,
    end,
    ...rest,
  }));
  return JSON.stringify({ default: text, files: places, size, ...others }, null, 2);
};

/** `rhcos-live` for `/isos/rhcos-live.iso`. */
export const stemOf = (path: string): string => basename(path).replace(/\.[^.]*$/, '');
