import { IntegrityError } from '../../base/errors.ts';
import { objectOrEmpty } from '../../base/lists.ts';
import { findYamlExcess, parse } from '../../shape/parse-text.ts';

/** File in which the agent services read what they register. */
export const INFRA_ENV = '/etc/assisted/manifests/infraenv.yaml';
export const PULL_SECRET_MANIFEST = '/etc/assisted/manifests/pull-secret.yaml';
export const AGENT_CLUSTER_INSTALL = '/etc/assisted/manifests/agent-cluster-install.yaml';

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
