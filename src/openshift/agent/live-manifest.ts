import { IntegrityError } from '../../base/errors.ts';
import { objectOrEmpty } from '../../base/lists.ts';
import { findYamlExcess, parse } from '../../shape/parse-text.ts';

/** Folder of what the agent services register. */
export const LIVE_MANIFESTS = '/etc/assisted/manifests/';
export const INFRA_ENV = `${LIVE_MANIFESTS}infraenv.yaml`;
export const PULL_SECRET_MANIFEST = `${LIVE_MANIFESTS}pull-secret.yaml`;
export const AGENT_CLUSTER_INSTALL = `${LIVE_MANIFESTS}agent-cluster-install.yaml`;

/**
 * Reads a manifest of a live system; an empty text has no members.
 *
 * @throws IntegrityError `medium.manifest` if it is not YAML, or more than is read
 */
export function parseLiveManifest(path: string, text: string): Readonly<Record<string, unknown>> {
  try {
    const excess = findYamlExcess(text);
    if (excess) throw excess;
    return objectOrEmpty(parse(text));
  } catch (cause) {
    throw new IntegrityError(
      'medium.manifest',
      `${path} of the medium is not YAML of one resource`,
      {
        cause,
      },
    );
  }
}
