import { IntegrityError, ConfigError } from '../../base/errors.ts';
import { FREE, LEFT_OUT, mapping, partial } from '../../shape/shape.ts';
import { SECTOR_SIZE } from '../extent.ts';
import type { IsoImage } from '../read/open.ts';
import { findEmbedArea, type EmbedArea } from './embed-area.ts';
import { readCoreosJson } from './json.ts';
import { readKargAreas, type KargAreas } from './kargs.ts';

/** Features that tools may use to customize an image; empty without `coreos/features.json`. */
export type CoreosFeatures = {
  readonly installerConfig: boolean;
  readonly installerConfigDirectives: readonly string[];
  readonly liveInitrdNetwork: boolean;
};

/** A live ISO of CoreOS (RHCOS, FCOS, SCOS), as far as it differs from any other image. */
export type CoreosLive = {
  readonly features: CoreosFeatures;
  readonly embedArea: EmbedArea;
  readonly kargs: KargAreas;
  /** Volume identifier that the live system waits for (`coreos.liveiso=`). */
  readonly liveisoLabel: string;
  /** True if there is a `coreos/miniso.dat`, the recipe of the minimal image. */
  readonly hasMinimalRecipe: boolean;
};

const NOT_COREOS = 'base-iso.not-coreos';
const LIVEISO = 'coreos.liveiso=';

/**
 * Reads the parts that make an image a live ISO of CoreOS.
 *
 * @throws IntegrityError `base-iso.not-coreos` when it is not: no embed area, no kernel argument areas, no
 * `coreos.liveiso=`, or one that names another volume; the cause has the reason
 */
export async function readCoreosLive(iso: IsoImage): Promise<CoreosLive> {
  try {
    const embedArea = await findEmbedArea(iso);
    const kargs = await readKargAreas(iso);
    return {
      features: await readCoreosFeatures(iso),
      embedArea,
      kargs,
      liveisoLabel: findLiveisoLabel(kargs, iso.volume.volumeId),
      hasMinimalRecipe: (await iso.find('/coreos/miniso.dat')) !== undefined,
    };
  } catch (cause) {
    if (!(cause instanceof IntegrityError)) throw cause;
    throw new IntegrityError(NOT_COREOS, `image ${iso.path} is not a live ISO of CoreOS`, {
      cause,
      hint: 'use the live ISO of the machine-os-images image of this release',
    });
  }
}

function findLiveisoLabel(kargs: KargAreas, volumeId: string): string {
  const found = kargs.text.split(/\s+/).filter((word) => word.startsWith(LIVEISO));
  const labels = found.map((word) => word.slice(LIVEISO.length));
  if (labels.length === 0) {
    throw new IntegrityError(NOT_COREOS, `kernel arguments "${kargs.text}" lack ${LIVEISO}`);
  }
  const label = labels.find((each) => each !== volumeId);
  if (label === undefined) return volumeId;
  throw new IntegrityError(
    NOT_COREOS,
    `kernel arguments wait for volume "${label}", but the volume is "${volumeId}"`,
    { expected: volumeId, found: label },
  );
}

/** A feature has another type in later versions, which we then do not know. */
const FEATURES = partial(
  {
    'installer-config': FREE,
    'installer-config-directives': mapping(FREE),
    'live-initrd-network': FREE,
  },
  LEFT_OUT,
);

/** @throws IntegrityError `iso.malformed-json` */
export async function readCoreosFeatures(iso: IsoImage): Promise<CoreosFeatures> {
  const node = await iso.find('/coreos/features.json');
  const json = node
    ? readCoreosJson(FEATURES, await iso.readFile(node, 65_536), 'coreos/features.json')
    : {};
  const directives = json['installer-config-directives'] ?? {};
  return {
    installerConfig: json['installer-config'] === true,
    installerConfigDirectives: Object.entries(directives)
      .filter(([, isSupported]) => isSupported === true)
      .map(([name]) => name)
      .sort(),
    liveInitrdNetwork: json['live-initrd-network'] === true,
  };
}

/** RPM's names of the architectures that are recognized. */
type KernelArchitecture = 'x86_64' | 'aarch64' | 'ppc64le';

const KERNEL = '/images/pxeboot/vmlinuz';

/** PE/COFF 3.3.1: machine types. */
const MACHINES: Readonly<Record<number, KernelArchitecture>> = {
  0x8664: 'x86_64',
  0xaa64: 'aarch64',
};

/** The magic number, class 2, encoding 1. */
const ELF_64_LE = '7f454c460201';
const ELF_PPC64 = 21;

/**
 * Checks that a live ISO is for the right architecture, before a machine fails to start.
 *
 * @param hint advice if the ISO is for another architecture
 * @throws ConfigError `base-iso.architecture`
 */
export async function requireArchitecture(
  iso: IsoImage,
  expected: KernelArchitecture,
  hint: string,
): Promise<void> {
  const found = await readKernelArchitecture(iso, KERNEL);
  if (found === undefined || found === expected) return;
  throw new ConfigError(
    'base-iso.architecture',
    `base ISO ${iso.path} is for ${found}, but the medium is for ${expected}`,
    { expected, found, hint },
  );
}

/**
 * Architecture of a kernel, from its header; undefined if the header is unknown.
 *
 * | offset | what | by |
 * |---|---|---|
 * | 0x202 | `HdrS` | Linux/x86 boot protocol 2.00 |
 * | 56 | `ARM\x64` | Linux/arm64 boot protocol |
 * | 0 | ELF header of 64 bits, little-endian, `e_machine` 21 at 18 | System V ABI, gABI 4.1 |
 * | 0x3c | offset of `PE\0\0` and the machine type | UEFI 2.10, 2.1.1 |
 */
export async function readKernelArchitecture(
  iso: IsoImage,
  path: string,
): Promise<KernelArchitecture | undefined> {
  const node = await iso.find(path);
  const [extent] = node?.kind === 'file' ? node.extents : [];
  if (extent === undefined) return undefined;
  const head = Buffer.alloc(4096);
  head.set(await iso.readBytes(extent.offset, Math.min(extent.size, head.length)));
  if (head.toString('latin1', 0x202, 0x206) === 'HdrS') return 'x86_64';
  if (head.toString('latin1', 56, 60) === 'ARMd') return 'aarch64';
  if (head.toString('hex', 0, 6) === ELF_64_LE) {
    return head.readUInt16LE(18) === ELF_PPC64 ? 'ppc64le' : undefined;
  }
  const pe = head.readUInt32LE(0x3c);
  const isPe = pe <= head.length - 6 && head.toString('latin1', pe, pe + 4) === 'PE\0\0';
  return isPe ? MACHINES[head.readUInt16LE(pe + 4)] : undefined;
}

/** A run of bytes that the minimal image has of the full one. Bytes. */
export type SharedRun = { readonly minimal: number; readonly full: number; readonly size: number };

/** `coreos/miniso.dat`: the recipe that makes the minimal image from the full one. */
export type MinimalRecipe = {
  /** By place in the minimal image. */
  readonly runs: readonly SharedRun[];
  /** SHA-256 of the minimal image, in hex. */
  readonly digest: string;
  /** Bytes outside the runs, as an xz stream. */
  readonly packed: Uint8Array;
};

const MAGIC = 'MINISO\0\0';
const VERSION = 1;
const MOST_RUNS = 100_000;

/**
 * Reads the recipe: magic, version, its writer, runs as sectors and sizes, digest, xz stream. A number below
 * 251 has one byte; others have two, four or eight after a byte 251, 252 or 253.
 *
 * @throws IntegrityError `miniso.malformed`
 */
export function parseMinimalRecipe(bytes: Uint8Array): MinimalRecipe {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = MAGIC.length;
  const take = (size: number): Buffer => {
    if (size > buffer.length - at) throw malformedLive('is cut off');
    at += size;
    return buffer.subarray(at - size, at);
  };
  const takeNumber = (): number => {
    const first = take(1).readUInt8();
    if (first < 251) return first;
    if (first === 251) return take(2).readUInt16LE();
    if (first === 252) return take(4).readUInt32LE();
    const value = first === 253 ? Number(take(8).readBigUInt64LE()) : Infinity;
    if (Number.isSafeInteger(value)) return value;
    throw malformedLive('has a number out of range');
  };
  if (buffer.toString('latin1', 0, MAGIC.length) !== MAGIC)
    throw malformedLive('is not a miniso file');
  const version = takeNumber();
  const creator = take(takeNumber()).toString('latin1');
  if (version !== VERSION)
    throw malformedLive(`has version ${version}, made by ${JSON.stringify(creator)}`);
  const count = takeNumber();
  if (count > MOST_RUNS) throw malformedLive(`has ${count} runs`);
  const runs = Array.from({ length: count }, (): SharedRun => {
    const [minimal, full, size] = [takeNumber(), takeNumber(), takeNumber()];
    return { minimal: minimal * SECTOR_SIZE, full: full * SECTOR_SIZE, size };
  });
  const digest = take(32).toString('hex');
  return { runs, digest, packed: take(takeNumber()) };
}

export const malformedLive = (problem: string): IntegrityError =>
  new IntegrityError('miniso.malformed', `coreos/miniso.dat ${problem}`, {
    expected: `a recipe of version ${VERSION}`,
    hint: 'use the live ISO as it was published',
  });
