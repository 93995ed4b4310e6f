import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { IntegrityError, SealiftError } from '../../base/errors.ts';
import { decodeCpio, type CpioMember, type SpecialMember } from '../../ignition/cpio.ts';

/** The label by which udev finds a configuration image. */
export const CONFIG_IMAGE_LABEL = 'agent_configimage';

/** The one file of a configuration image. */
export const CONFIG_ARCHIVE_PATH = '/config.gz';

/** Bytes of `config.gz`; installers write 20 KB, and manifests of users come on top. */
export const MAX_ARCHIVE_SIZE = 16 << 20;

/** Bytes that it may unpack to. */
const MAX_UNPACKED_SIZE = 32 << 20;

export type ConfigArchive = {
  /** By name. A name that occurs twice has all of its contents, as `cpio --to-stdout` gives them. */
  readonly files: ReadonlyMap<string, Uint8Array>;
  /** Names that occur more than once, sorted. */
  readonly repeated: readonly string[];
  readonly special: readonly SpecialMember[];
};

/**
 * Reads a `config.gz`: gzip of a newc archive with absolute names.
 *
 * @throws IntegrityError `config-image.archive` for anything else, and for more than 32 MiB of it
 */
export async function decodeConfigArchive(bytes: Uint8Array): Promise<ConfigArchive> {
  const { members, special } = decodeMembers(await unpack(bytes));
  const files = new Map<string, Uint8Array>();
  const parts = new Map<string, Uint8Array[]>();
  for (const { name, data } of members) {
    const known = parts.get(name);
    if (known) known.push(data);
    else parts.set(name, [data]);
  }
  for (const [name, pieces] of parts) {
    const [first] = pieces;
    files.set(name, pieces.length === 1 && first ? first : Buffer.concat(pieces));
  }
  const repeated = [...parts].flatMap(([name, { length }]) => (length > 1 ? [name] : [])).sort();
  return { files, repeated, special };
}

async function unpack(bytes: Uint8Array): Promise<Uint8Array> {
  try {
    return await promisify(gunzip)(bytes, { maxOutputLength: MAX_UNPACKED_SIZE });
  } catch (cause) {
    const isLarge = (cause as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE';
    throw malformed(
      isLarge ? `unpacks to more than ${MAX_UNPACKED_SIZE} bytes` : 'is not a whole gzip file',
      cause,
    );
  }
}

function decodeMembers(bytes: Uint8Array): {
  readonly members: readonly CpioMember[];
  readonly special: readonly SpecialMember[];
} {
  try {
    return decodeCpio(bytes, 0);
  } catch (cause) {
    if (!(cause instanceof SealiftError)) throw cause;
    throw malformed(`is not a newc archive: ${cause.message}`, cause);
  }
}

const malformed = (reason: string, cause: unknown): IntegrityError =>
  new IntegrityError('config-image.archive', `${CONFIG_ARCHIVE_PATH} ${reason}`, { cause });
