import { createPublicKey, sign, type KeyObject } from 'node:crypto';
import { hexOf, type Digest } from '../../src/base/digest.ts';
import { MEDIA_TYPE } from '../../src/registry/manifest.ts';
import type { ImageRegistry } from './image-registry.ts';
import { descriptorOf, storeManifest, type TestImage } from './images.ts';

const SIMPLE_SIGNING = 'application/vnd.dev.cosign.simplesigning.v1+json';
const ANNOTATION = 'dev.cosignproject.cosign/signature';
const BUNDLE = 'application/vnd.dev.sigstore.bundle.v0.3+json';
const STATEMENT = 'application/vnd.in-toto+json';

/** As cosign signs: with SHA-256, but for Ed25519. */
export const signBytes = (bytes: Uint8Array, key: KeyObject): Buffer =>
  sign(key.asymmetricKeyType === 'ed25519' ? null : 'sha256', bytes, key);

/** What cosign signs of an image (SIGNATURE_SPEC.md, "Payload"). */
export const stateImage = (digest: Digest, identity: string): Record<string, unknown> => ({
  critical: {
    identity: { 'docker-reference': identity },
    image: { 'docker-manifest-digest': digest },
    type: 'cosign container image signature',
  },
  optional: null,
});

/** A layer of the image that is attached. */
export type Attached = {
  readonly payload: Uint8Array;
  /** Base64. */
  readonly signature?: string;
  readonly mediaType?: string;
};

/** The image that holds signatures. */
export function packSignatures(
  layers: readonly Attached[],
  mediaType: string = MEDIA_TYPE.ociManifest,
): TestImage {
  const config = Buffer.from(
    '{"architecture":"","os":"","rootfs":{"type":"layers","diff_ids":[]}}',
  );
  const manifest = storeManifest({
    schemaVersion: 2,
    mediaType,
    config: descriptorOf(config, MEDIA_TYPE.ociConfig),
    layers: layers.map(({ payload, signature, mediaType: type = SIMPLE_SIGNING }) => ({
      ...descriptorOf(payload, type),
      ...(signature !== undefined && { annotations: { [ANNOTATION]: signature } }),
    })),
  });
  const blobs = [config, ...layers.map(({ payload }) => payload)];
  return {
    manifests: [manifest],
    blobs: new Map(blobs.map((bytes) => [descriptorOf(bytes, '').digest, bytes])),
  };
}

/** Attaches signatures to an image as cosign 2 does. */
export function attach(
  registry: ImageRegistry,
  { repository, digest }: { readonly repository: string; readonly digest: Digest },
  signatures: TestImage,
): void {
  registry.add(repository, signatures, `sha256-${hexOf(digest)}.sig`);
}

/** Attaches a bundle to an image as cosign 3 does where a registry has no list of referrers. */
export function attachBundle(
  registry: ImageRegistry,
  { repository, digest }: { readonly repository: string; readonly digest: Digest },
  key: KeyObject,
): void {
  const statement = Buffer.from(
    JSON.stringify({
      _type: 'https://in-toto.io/Statement/v1',
      subject: [{ digest: { sha256: hexOf(digest) } }],
      predicateType: 'https://sigstore.dev/cosign/sign/v1',
      predicate: {},
    }),
  );
  const signed = Buffer.concat([
    Buffer.from(`DSSEv1 ${STATEMENT.length} ${STATEMENT} ${statement.length} `),
    statement,
  ]);
  const bundle = Buffer.from(
    JSON.stringify({
      mediaType: BUNDLE,
      verificationMaterial: { publicKey: { hint: '' } },
      dsseEnvelope: {
        payload: statement.toString('base64'),
        payloadType: STATEMENT,
        signatures: [{ sig: signBytes(signed, key).toString('base64') }],
      },
    }),
  );
  const image = packSignatures([{ payload: bundle, mediaType: BUNDLE }]);
  const [manifest] = image.manifests;
  if (!manifest) throw new Error('an image has a manifest');
  const list = storeManifest({
    schemaVersion: 2,
    mediaType: MEDIA_TYPE.ociIndex,
    manifests: [{ ...manifest.descriptor, artifactType: BUNDLE }],
  });
  registry.add(
    repository,
    { manifests: [list, manifest], blobs: image.blobs },
    `sha256-${hexOf(digest)}`,
  );
}

/** A manifest of a payload with a policy that asks for this key. */
export function makeImagePolicy(
  key: KeyObject,
  scopes: readonly string[],
  { featureSet, ...policy }: { readonly featureSet?: string; readonly [key: string]: unknown } = {},
): string {
  const pem = createPublicKey(key).export({ type: 'spki', format: 'pem' }).toString();
  return JSON.stringify({
    apiVersion: 'config.openshift.io/v1',
    kind: 'ClusterImagePolicy',
    metadata: {
      name: 'openshift',
      annotations: {
        'include.release.openshift.io/self-managed-high-availability': 'true',
        ...(featureSet !== undefined && { 'release.openshift.io/feature-set': featureSet }),
      },
    },
    spec: {
      scopes,
      policy: {
        rootOfTrust: {
          policyType: 'PublicKey',
          publicKey: { keyData: Buffer.from(pem).toString('base64') },
        },
        ...policy,
      },
    },
  });
}
