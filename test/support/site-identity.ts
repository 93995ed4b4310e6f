import { createHash } from 'node:crypto';
import { runProcess } from '../../src/base/process.ts';
import {
  type RandomBytes,
  makeIdentity,
  type IdentityTools,
} from '../../src/sites/identity/make.ts';
import { createKeySource, type KeySource } from '../../src/sites/identity/keys.ts';
import type { SiteKeyPair, SiteIdentity } from '../../src/sites/identity/identity.ts';

/** 2026-01-02T03:04:05Z, in seconds. */
export const MADE_AT = 1_767_323_045;

export const ALPHA = { clusterName: 'alpha', baseDomain: 'edge.example' };

/** Bytes that the same seed gives again. */
export function seedRandom(seed: string): RandomBytes {
  let drawn = 0;
  return (size) => {
    const blocks = Array.from({ length: Math.ceil(size / 32) }, () =>
      createHash('sha256').update(`${seed} ${drawn++}`).digest(),
    );
    return Buffer.concat(blocks).subarray(0, size);
  };
}

/** Hands out the same keys over and over, and counts them; hashes for real. */
export type KeyRing = KeySource & { readonly handedOut: () => number };

/** Six keys, as many as a site has, are made for all tests of a file. */
export async function makeKeyRing(): Promise<KeyRing> {
  const source = createKeySource({ jobs: 2 });
  const pairs = await Promise.all(Array.from({ length: 6 }, () => source.next()));
  let next = 0;
  return {
    next: () => Promise.resolve(pairs[next++ % 6] ?? source.next()),
    hashPassword: (text, salt) => source.hashPassword(text, salt),
    close: () => source.close(),
    handedOut: () => next,
  };
}

export const makeAlpha = (
  keys: KeySource,
  tools: Partial<IdentityTools> = {},
): Promise<SiteIdentity> => makeIdentity(ALPHA, { keys, epoch: MADE_AT, ...tools });

/** All that has a certificate, by the name of its files. */
export const listPairs = ({
  signers,
  adminClient,
}: SiteIdentity): Readonly<Record<string, SiteKeyPair>> => ({
  'kube-apiserver-lb-signer': signers.loadBalancer,
  'kube-apiserver-localhost-signer': signers.localhost,
  'kube-apiserver-service-network-signer': signers.serviceNetwork,
  'ingress-operator-signer': signers.ingress,
  'admin-kubeconfig-signer': { privateKey: '', ...signers.adminKubeconfig },
  'admin-kubeconfig-client': adminClient,
});

export async function openssl(args: readonly string[], input?: string): Promise<string> {
  const { stdout } = await runProcess('openssl', args, input === undefined ? {} : { input });
  return stdout;
}
