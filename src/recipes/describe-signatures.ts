import type { Release, ReleaseSignature } from '../openshift/release/release-payload.ts';

/** What plan and report say of the signature of a release. */
export type DescribedSignature = { readonly version: string } & (
  | Omit<Extract<ReleaseSignature, { status: 'verified' }>, 'messages'>
  | Extract<ReleaseSignature, { status: 'unsigned' }>
);

export const describeSignatures = (
  releases: readonly Pick<Release, 'version' | 'signature'>[],
): readonly DescribedSignature[] =>
  releases.flatMap(({ version, signature }): DescribedSignature[] => {
    if (!signature) return [];
    if (signature.status === 'unsigned') return [{ version, ...signature }];
    const { status, key, identity, from } = signature;
    return [{ version, status, key, identity, from }];
  });
