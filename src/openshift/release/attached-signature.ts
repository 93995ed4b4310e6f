import { createPublicKey, type KeyObject } from 'node:crypto';
import { type Descriptor, MEDIA_TYPE, type StoredManifest } from '../../registry/index.ts';
import {
  findSignatureProblem,
  SIGNATURE_ANNOTATION,
  type Signed,
  SIMPLE_SIGNING,
} from './signature.ts';

/* The image that cosign attaches to another, as nodes read it: one rule for the build and the rehearsal. */

/** An image that is signed repeatedly keeps all signatures; the last may be the one that counts. */
const MOST_SIGNATURES = 128;
const LARGEST_PAYLOAD = 64 << 10;

/** The reason why a node accepts none of the signatures, that of the first; undefined if it accepts one. */
export async function judgeAttached(
  manifest: StoredManifest['manifest'],
  signed: Signed,
  readPayload: (layer: Descriptor) => Promise<Uint8Array>,
): Promise<string | undefined> {
  const layers = manifest.kind === 'manifest' ? manifest.layers.filter(isSignature) : [];
  if (manifest.mediaType !== MEDIA_TYPE.ociManifest || layers.length === 0) {
    return 'the image attached as its signature has no signature in it';
  }
  let first: string | undefined;
  for (const layer of layers.slice(0, MOST_SIGNATURES)) {
    const payload = await readPayload(layer);
    const signature = layer.annotations?.[SIGNATURE_ANNOTATION] ?? '';
    const problem = findSignatureProblem({ payload, signature }, signed);
    if (problem === undefined) return undefined;
    first ??= problem;
  }
  return `its signature is refused: ${first ?? ''}`;
}

const isSignature = ({ mediaType, size }: Descriptor): boolean =>
  mediaType === SIMPLE_SIGNING && size <= LARGEST_PAYLOAD;

/** Creates a reader that parses each key once. */
export function createKeyReader(): (pem: string) => KeyObject {
  const keys = new Map<string, KeyObject>();
  return (pem) => {
    const key = keys.get(pem) ?? createPublicKey(pem);
    keys.set(pem, key);
    return key;
  };
}
