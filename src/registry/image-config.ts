import type { SealiftError } from '../base/errors.ts';
import { decodeJson, GO_RULES, requireDecoded } from '../shape/decode.ts';
import {
  defaulted,
  FLAG,
  LEFT_OUT,
  list,
  mapping,
  optional,
  partial,
  record,
  TEXT,
  type TypeOf,
} from '../shape/shape.ts';
import { describeFinding } from '../shape/words.ts';

const TEXTS = list(TEXT);

const START = record(
  {
    Entrypoint: defaulted(TEXTS, () => []),
    Cmd: defaulted(TEXTS, () => []),
    Labels: defaulted(mapping(TEXT), () => ({})),
  },
  LEFT_OUT,
);

/** Read it by the rules of Go. */
export const IMAGE_CONFIG = record(
  {
    architecture: optional(TEXT),
    os: optional(TEXT),
    variant: optional(TEXT),
    created: optional(TEXT),
    config: defaulted(START, () => ({ Entrypoint: [], Cmd: [], Labels: {} })),
    history: defaulted(list(partial({ created_by: TEXT, empty_layer: FLAG }, LEFT_OUT)), () => []),
  },
  LEFT_OUT,
);

/** The config of an image (OCI image-spec config.md); absent lists and labels are empty. */
export type ImageConfig = TypeOf<typeof IMAGE_CONFIG>;

/** @param refuse makes the error of a problem, which is a sentence without its subject */
export const parseImageConfig = (
  bytes: Uint8Array,
  refuse: (problem: string) => SealiftError,
): ImageConfig =>
  requireDecoded(decodeJson(IMAGE_CONFIG, bytes, GO_RULES), ([first]) =>
    refuse(describeFinding(first, 'it')),
  );
