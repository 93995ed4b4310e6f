import type { Release } from '../openshift/release/release-payload.ts';
import type { SurveyedWorkspace } from '../openshift/workspace/workspace-set.ts';
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
