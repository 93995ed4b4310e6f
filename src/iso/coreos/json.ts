import { IntegrityError } from '../../base/errors.ts';
import { decodeJson, requireDecoded } from '../../shape/decode.ts';
import {
  COUNT,
  list,
  matching,
  optional,
  record,
  TEXT,
  type Shape,
  type TypeOf,
} from '../../shape/shape.ts';
import { describeFinding } from '../../shape/words.ts';
import type { IsoNode } from '../read/node.ts';
import type { IsoImage } from '../read/open.ts';

/* The JSON files of a CoreOS live ISO, as coreos-installer reads them. */

const KEPT = { others: 'kept' } as const;

const CHARACTER = matching(/^\p{ASCII}$/su);

const KARGS = record(
  {
    default: TEXT,
    files: list(
      record(
        {
          path: TEXT,
          offset: optional(COUNT),
          pad: optional(CHARACTER),
          end: optional(CHARACTER),
        },
        KEPT,
      ),
    ),
    size: COUNT,
  },
  KEPT,
);
export const KARGS_PATH = 'coreos/kargs.json';

/** `coreos/kargs.json`. */
export type KargsFile = TypeOf<typeof KARGS>;

/** @throws IntegrityError `iso.malformed-json` */
export const readKargsFile = async (
  iso: Pick<IsoImage, 'readFile'>,
  node: IsoNode,
): Promise<KargsFile> => readCoreosJson(KARGS, await iso.readFile(node, LIMIT), KARGS_PATH);

/** Bytes. */
const LIMIT = 65_536;

/** `coreos/igninfo.json`. */
export const IGNITION_INFO = record(
  { file: TEXT, offset: optional(COUNT), length: optional(COUNT) },
  KEPT,
);

export const readCoreosJson = <T>(shape: Shape<T>, bytes: Uint8Array, path: string): T =>
  requireDecoded(
    decodeJson(shape, bytes),
    ([first]) =>
      new IntegrityError('iso.malformed-json', `${path}: ${describeFinding(first, 'it')}`),
  );
