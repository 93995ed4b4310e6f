import { createPublicKey, type KeyObject } from 'node:crypto';
import { objectOrEmpty, withoutUndefined } from '../../base/lists.ts';
import type { Reference } from '../../registry/index.ts';
import {
  findInternalReleaseImage,
  isInDefaultSet,
  type PayloadManifest,
  type ResourceDefinition,
  unreadableManifest,
} from './manifests.ts';
import { isAtLeast, isSignedVersion } from './version.ts';

/**
 * Since 4.21 a cluster accepts images of OpenShift only with a signature (ClusterImagePolicy `openshift`).
 * With any text here, the `openshift-install` of the rendezvous host's assisted service leaves that out.
 */
export const IMAGE_POLICY_VARIABLE = 'OPENSHIFT_INSTALL_EXPERIMENTAL_DISABLE_IMAGE_POLICY';

/** By default only for CI builds and nightlies, which are not signed and which no node would start. */
export const disablesImagePolicy = (version: string, wish: boolean | undefined): boolean =>
  wish ?? !isSignedVersion(version);

/**
 * True if a cluster of this version was installed without its image policy, and so has an override of
 * ClusterVersion. Installers before 4.21 make none for a build that is not signed.
 *
 * @param version absent if it is not known
 */
export const leavesOverrides = (version: string | undefined, wish: boolean | undefined): boolean =>
  wish ?? (version !== undefined && isAtLeast(version, '4.21.0') && !isSignedVersion(version));

export const IMAGE_POLICY = 'ClusterImagePolicy';

/** A ClusterImagePolicy (config.openshift.io/v1) in the form that nodes apply. Plain JSON. */
export type ImagePolicy = {
  readonly name: string;
  /** A registry, namespace, repository, tag or digest, or `*.` and a domain. */
  readonly scopes: readonly string[];
  /** Feature sets of the clusters that have it; absent: every cluster. */
  readonly featureSets?: readonly string[];
  /** PEM of the key that must have signed; absent if the policy asks for something else. */
  readonly key?: string;
  /** The name of the image that the signature must have. */
  readonly identity: SignedIdentity;
};

/** containers-policy.json(5), signedIdentity. */
export type SignedIdentity =
  | { readonly kind: 'digest-or-exact' }
  | { readonly kind: 'repository' }
  | { readonly kind: 'exact-repository'; readonly repository: string }
  | { readonly kind: 'remapped'; readonly prefix: string; readonly signedPrefix: string };

export const readImagePolicies = (manifests: readonly PayloadManifest[]): readonly ImagePolicy[] =>
  manifests
    .filter(({ document }) => document['kind'] === IMAGE_POLICY)
    .map(({ path, document, featureSets }) => {
      const spec = objectOrEmpty(document['spec']);
      const { name } = objectOrEmpty(document['metadata']);
      const { scopes } = spec;
      if (typeof name !== 'string' || !isTexts(scopes)) {
        throw unreadableManifest(path, 'it has no metadata.name or spec.scopes');
      }
      const { rootOfTrust, signedIdentity } = objectOrEmpty(spec['policy']);
      const key = readKey(objectOrEmpty(rootOfTrust), path);
      return {
        name,
        scopes,
        identity: readIdentity(objectOrEmpty(signedIdentity), path),
        ...withoutUndefined({ featureSets, key }),
      };
    });

/** A signature that a transparency log or an authority must confirm is not verified here. */
function readKey({ policyType, publicKey }: Members, path: string): string | undefined {
  const { keyData, rekorKeyData } = objectOrEmpty(publicKey);
  if (policyType !== 'PublicKey' || rekorKeyData !== undefined) return undefined;
  const pem = Buffer.from(typeof keyData === 'string' ? keyData : '', 'base64').toString('utf8');
  try {
    return checkKey(pem).export({ type: 'spki', format: 'pem' }).toString();
  } catch (cause) {
    throw unreadableManifest(path, `its keyData is not ${EXPECTED_KEY}`, cause);
  }
}

const EXPECTED_KEY = 'a public key in PEM of RSA, Ed25519 or a NIST curve';

/** Reads a key like a node: neither a certificate nor a private key, and of no other algorithm. */
function checkKey(pem: string): KeyObject {
  const [label] = /-----BEGIN [^-]*-----/.exec(pem) ?? [];
  const key = createPublicKey(pem);
  const { asymmetricKeyType: type = '', asymmetricKeyDetails: details } = key;
  const isKnown = type === 'ec' ? CURVES.includes(details?.namedCurve) : TYPES.includes(type);
  if (isKnown && label !== undefined && LABELS.includes(label)) return key;
  throw new Error(`it is ${label ?? 'without armour'}, ${type}`);
}

const LABELS = ['-----BEGIN PUBLIC KEY-----', '-----BEGIN RSA PUBLIC KEY-----'];
const TYPES: readonly string[] = ['rsa', 'ed25519'];
const CURVES: readonly unknown[] = ['secp224r1', 'prime256v1', 'secp384r1', 'secp521r1'];

function readIdentity(identity: Members, path: string): SignedIdentity {
  const { matchPolicy } = identity;
  const { repository } = objectOrEmpty(identity['exactRepository']);
  const { prefix, signedPrefix } = objectOrEmpty(identity['remapIdentity']);
  if (matchPolicy === 'ExactRepository' && typeof repository === 'string') {
    return { kind: 'exact-repository', repository };
  }
  if (matchPolicy === 'RemapIdentity' && isTexts([prefix, signedPrefix])) {
    return { kind: 'remapped', prefix: String(prefix), signedPrefix: String(signedPrefix) };
  }
  if (REPOSITORY_POLICIES.includes(matchPolicy)) {
    return { kind: matchPolicy === 'MatchRepository' ? 'repository' : 'digest-or-exact' };
  }
  throw unreadableManifest(path, 'its spec.policy.signedIdentity is not known');
}

/** The first is the default. */
const REPOSITORY_POLICIES: readonly unknown[] = [
  undefined,
  'MatchRepoDigestOrExact',
  'MatchRepository',
];

/** If media need a preview, their clusters also have the policies of the preview. */
export function listApplied({
  imagePolicies,
  definitions,
}: {
  readonly imagePolicies: readonly ImagePolicy[];
  readonly definitions: readonly ResourceDefinition[];
}): readonly ImagePolicy[] {
  const isPreview = findInternalReleaseImage(definitions)?.isPreview === true;
  return imagePolicies.filter(
    (policy) =>
      isInDefaultSet(policy) ||
      (isPreview && policy.featureSets?.includes('TechPreviewNoUpgrade') === true),
  );
}

/**
 * containers-policy.json(5), "docker": of the scopes that contain an image by digest, only the most specific
 * one counts; all policies that name it must hold.
 */
export function createPolicyFinder(
  policies: readonly ImagePolicy[],
): (image: Reference) => readonly ImagePolicy[] {
  const byScope = new Map<string, ImagePolicy[]>();
  for (const policy of policies) {
    for (const scope of new Set(policy.scopes)) {
      const known = byScope.get(scope);
      if (known) known.push(policy);
      else byScope.set(scope, [policy]);
    }
  }
  return (image) => {
    const scope = listScopes(image).find((one) => byScope.has(one));
    return byScope.get(scope ?? '') ?? [];
  };
}

/** The image, its repository, the namespaces above it, the registry, then domains without a port. */
function listScopes({ registry, repository, digest }: Reference): readonly string[] {
  const names = [registry, ...repository.split('/')];
  const labels = registry.replace(/:\d+$/, '').split('.');
  const [, ...above] = labels.keys();
  return [
    `${names.join('/')}@${digest ?? ''}`,
    ...[...names.keys()].reverse().map((last) => names.slice(0, last + 1).join('/')),
    ...above.map((first) => `*.${labels.slice(first).join('.')}`),
  ];
}

type Members = Readonly<Record<string, unknown>>;

const isTexts = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'string');
