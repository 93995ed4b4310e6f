import type { Release, ReleaseSignature } from '../openshift/release/release.ts';
import type { SurveyedWorkspace } from '../openshift/workspace/set.ts';
import { resolveRelease, type ResolveReleaseInput } from '../stages/content/resolve-release.ts';
import { verifyRelease, type SignatureGate } from '../stages/content/verify-release.ts';
import type { BuildTools } from './build-tools.ts';

/**
 * A release as it was found, with its signature verified: what is large, and what is executed, is fetched
 * of this one only.
 *
 * @param wanted values, or promises of them
 */
export function resolveVerified(
  wanted: Omit<ResolveReleaseInput, 'url'> & { readonly url?: string | Promise<string> },
  { engine }: BuildTools,
  given: { readonly signatures: SignatureGate; readonly workspace?: Promise<SurveyedWorkspace> },
): Promise<Release> {
  const { signatures, workspace } = given;
  return engine.run(verifyRelease, {
    ...signatures,
    release: engine.run(resolveRelease, wanted),
    ...(workspace && { workspace: workspace.then((found) => found.signatures) }),
  });
}

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
