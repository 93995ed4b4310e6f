import { createHash } from 'node:crypto';
import { digestFromHex, digestOf, hexOf, type Digest } from '../base/digest.ts';
import { IntegrityError } from '../base/errors.ts';
import type { ByteRange, RandomAccess } from '../base/random-access.ts';
import { decodeVolumeDescriptor, SECTOR_SIZE, type IsoImage } from '../iso/index.ts';
import { applyParts, type OverlayPart } from './areas.ts';
import { NewerFormatError } from './newer.ts';

/*
 * Owns the proof of a medium that has no index: a digest of every other byte, in the Application Use field of
 * the primary volume descriptor (ECMA-119 8.4.32), where isomd5sum has its own. A file would disturb the
 * consumers: a node copies a configuration ISO whole, and an installation ISO is its base except for one
 * area.
 */

/** Products that carry a proof instead of an index. */
export type ProvenProduct = 'config-iso' | 'installation-iso';

export type Proof = {
  readonly product: ProvenProduct;
  /** Version of sealift that made the medium. */
  readonly program: string;
  /** The origin in one word of printable ASCII: a site, a release. */
  readonly of: string;
  /** Bytes of the medium; a device may have more. */
  readonly size: number;
  /** SHA-256 of the medium, with zeros in its mutable areas and in the digits of this digest. */
  readonly digest: Digest;
  /** Digests of the mutable areas as the build left them, by kind; several areas are joined. */
  readonly areas: Readonly<Partial<Record<ProvenArea, Digest>>>;
};

export type ProvenArea = 'ignition' | 'kernel-arguments';

export type PlacedArea = ByteRange & { readonly kind: ProvenArea };

export type ProofOptions = Omit<Proof, 'digest' | 'areas'> & {
  /** By offset; without overlap. */
  readonly areas: readonly PlacedArea[];
};

export type Reading = {
  readonly read: RandomAccess['read'];
  readonly signal?: AbortSignal;
  readonly onProgress?: (bytes: number, total: number) => void;
};

/** @throws the signal's reason; errors of reading */
export async function planProof(reading: Reading, options: ProofOptions): Promise<OverlayPart> {
  const { areas: places, ...about } = options;
  const areas = await digestAreas(reading, places);
  const blank = {
    offset: FIELD.offset,
    bytes: formatProof({ ...about, areas, digest: NO_DIGEST }),
  };
  const digest = await digestProven(reading, { size: options.size, areas: places, field: blank });
  return { offset: FIELD.offset, bytes: formatProof({ ...about, areas, digest }) };
}

/** Writes the proof of a small image without mutable areas into its bytes. */
export function proveImage(image: Uint8Array, about: Omit<ProofOptions, 'size' | 'areas'>): void {
  const proof = { ...about, size: image.length, areas: {} };
  image.set(formatProof({ ...proof, digest: NO_DIGEST }), FIELD.offset);
  image.set(formatProof({ ...proof, digest: digestOf(image) }), FIELD.offset);
}

/** Undefined if the medium does not carry a proof. */
export async function readProof({
  read,
  size,
}: Pick<RandomAccess, 'read' | 'size'>): Promise<Proof | undefined> {
  if (size < (PRIMARY_SECTOR + 1) * SECTOR_SIZE) return undefined;
  const sector = await read(PRIMARY_SECTOR * SECTOR_SIZE, SECTOR_SIZE);
  const descriptor = decodeVolumeDescriptor(sector);
  return descriptor.kind === 'primary' ? parseProof(descriptor.volume.applicationUse) : undefined;
}

/** The digest that a medium should have by its proof, computed from its bytes. */
export const digestByProof = (
  reading: Reading,
  proof: Proof,
  areas: readonly ByteRange[],
): Promise<Digest> => {
  const bytes = formatProof({ ...proof, digest: NO_DIGEST });
  return digestProven(reading, { size: proof.size, areas, field: { ...FIELD, bytes } });
};

/** Digests of areas by kind: several of one kind are joined by offset. */
async function digestAreas(
  { read }: Pick<Reading, 'read'>,
  areas: readonly PlacedArea[],
): Promise<Partial<Record<ProvenArea, Digest>>> {
  const digests: Partial<Record<ProvenArea, Digest>> = {};
  for (const kind of KINDS) {
    const own = areas.filter((area) => area.kind === kind);
    const bytes: Uint8Array[] = [];
    for (const { offset, size } of own) bytes.push(Buffer.from(await read(offset, size)));
    if (own.length > 0) digests[kind] = digestOf(Buffer.concat(bytes));
  }
  return digests;
}

const KINDS = ['ignition', 'kernel-arguments'] as const;

/** Sector of the primary volume descriptor (ECMA-119 6.2.1) in every known image. */
const PRIMARY_SECTOR = 16;

/** ECMA-119 8.4.32: BP 884 to 1395. */
const FIELD = { offset: PRIMARY_SECTOR * SECTOR_SIZE + 883, size: 512 };

/**
 * The field is text: the mark, one member a line, spaces, and the mark again, so that no single
 * damaged byte makes the proof disappear, or one of a newer format.
 *
 *     sealift proof 1
 *     sha256 <64 hex digits>
 *     size <bytes>
 *     product config-iso
 *     program 0.2.0
 *     of site-0001
 *     ignition <64 hex digits>
 *     kernel-arguments <64 hex digits>
 */
const MARK = 'sealift proof 1\n';
const NO_DIGEST = digestFromHex('0'.repeat(64));
const MOST_OF = 64;

function formatProof({ product, program, of, size, digest, areas }: Proof): Uint8Array {
  if (!/^[\x21-\x7e]{1,64}$/.test(of) || !/^[\x21-\x7e]{1,32}$/.test(program)) {
    throw new RangeError(`"${of}" and "${program}" are not words of printable ASCII`);
  }
  const members = [
    `sha256 ${hexOf(digest)}`,
    `size ${size}`,
    `product ${product}`,
    `program ${program}`,
    `of ${of}`,
    ...KINDS.flatMap((kind) => (areas[kind] ? [`${kind} ${hexOf(areas[kind])}`] : [])),
  ];
  const text = `${MARK}${members.join('\n')}\n`.padEnd(FIELD.size - MARK.length) + MARK;
  return Buffer.from(text, 'latin1');
}

/** A word for an origin of any characters, which `formatProof` takes. */
export const toProofWord = (text: string): string =>
  text.replaceAll(/[^\x21-\x7e]+/g, '-').slice(0, MOST_OF) || '-';

const MEMBERS =
  /^sha256 ([0-9a-f]{64})\nsize (\d{1,15})\nproduct (config-iso|installation-iso)\nprogram ([\x21-\x7e]{1,32})\nof ([\x21-\x7e]{1,64})\n(?:ignition ([0-9a-f]{64})\n)?(?:kernel-arguments ([0-9a-f]{64})\n)? *$/;

function parseProof(field: Uint8Array): Proof | undefined {
  const text = Buffer.from(field).toString('latin1');
  if (!isMarked(text)) return undefined;
  const [, hex, size, product, program, of, ignition, kargs] =
    MEMBERS.exec(text.slice(MARK.length, -MARK.length)) ?? [];
  if (hex === undefined) throw damaged();
  return {
    product: product as ProvenProduct,
    program: program ?? '',
    of: of ?? '',
    size: Number(size),
    digest: digestFromHex(hex),
    areas: {
      ...(ignition !== undefined && { ignition: digestFromHex(ignition) }),
      ...(kargs !== undefined && { 'kernel-arguments': digestFromHex(kargs) }),
    },
  };
}

function isMarked(field: string): boolean {
  const [first, last] = [field.slice(0, MARK.length), field.slice(-MARK.length)].map(
    (mark) => /^sealift proof ([1-9])\n$/.exec(mark)?.[1],
  );
  if (first !== last) throw damaged();
  if (first !== undefined && first !== '1')
    throw new NewerFormatError('the medium', Number(first), 1);
  return first !== undefined;
}

const damaged = (): IntegrityError =>
  new IntegrityError(
    'proof.damaged',
    'the proof in the volume descriptor is not as sealift writes it',
    {
      hint: 'copy the medium again from where it was made',
    },
  );

type Proven = {
  readonly size: number;
  readonly areas: readonly ByteRange[];
  readonly field: OverlayPart;
};

const PIECE = 4 * 2 ** 20;

async function digestProven(
  { read, signal, onProgress }: Reading,
  { size, areas, field }: Proven,
): Promise<Digest> {
  const zeros = areas.map((area) => ({ offset: area.offset, bytes: new Uint8Array(area.size) }));
  const parts = [field, ...zeros];
  const hash = createHash('sha256');
  for (let at = 0; at < size; at += PIECE) {
    signal?.throwIfAborted();
    const bytes = await read(at, Math.min(PIECE, size - at));
    applyParts(bytes, at, parts);
    hash.update(bytes);
    onProgress?.(at + bytes.length, size);
  }
  return digestFromHex(hash.digest('hex'));
}

/** Names an ISO of ours that has a proof instead of an index: it is small, and copied whole. */
export async function noIndex(
  { path, fileSize, readBytes }: IsoImage,
  code: 'artifact.no-index' | 'delta.no-index',
): Promise<IntegrityError> {
  const proof = await readProof({ read: readBytes, size: fileSize });
  return proof
    ? new IntegrityError(code, `${path} is the ${proof.product} of ${proof.of}, without an index`, {
        expected: 'an ISO with an index: a live, upgrade or installation ISO that has grown',
        found: proof.product,
        hint: 'copy the whole ISO: it is its base, or small',
      })
    : new IntegrityError(code, `${path} has no index with a digest`, {
        expected: 'an ISO that sealift made',
        hint: 'name the ISO that sealift built',
      });
}
