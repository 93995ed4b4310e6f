import type { DocumentProblem } from '../../../base/errors.ts';
import { append, objectOrEmpty } from '../../../base/lists.ts';
import { decodeMade, type MadeValue } from '../../../shape/document.ts';
import {
  AGENT_CONFIG,
  AGENT_INSTALL_CONFIG,
  AGENT_PUBLIC_KEYS,
  type WrittenAgentConfig,
} from '../../agent/documents.ts';
import { listAgentHosts } from '../../agent/read-cluster.ts';
import { readSiteDocument } from '../../documents.ts';
import { type SiteFile, INSTALL_FILE, AGENT_FILE } from '../../site.ts';
import { type FoundResource, indexResources } from '../find.ts';
import { makeFile, type Made } from '../make.ts';
import { findSetImage, listManifests } from '../references.ts';
import { makeAgentConfig } from './hosts.ts';
import { makeInstallConfig } from './install.ts';
import { type ClusterParts, gatherParts, placeIn } from './parts.ts';
import { judgeParts, listInstallMembers, listLostParts } from './rules.ts';

/*
 * Owns the conversion of an AgentClusterInstall with its ClusterDeployment, InfraEnv, NMStateConfigs, pull Secret
 * and BareMetalHosts.
 */

export function convertCluster(
  root: FoundResource,
  resources: readonly FoundResource[],
  beside: readonly SiteFile[],
): Made {
  const index = indexResources(resources, root.namespace);
  const problems: DocumentProblem[] = [];
  const warnings: DocumentProblem[] = [];
  const parts = gatherParts(root, { index, problems, warnings });
  if (!parts) return { files: [], problems, warnings, index };
  append(problems, judgeParts(parts));
  append(warnings, listLostParts(parts));
  const made = makeFiles(
    parts,
    beside.find(({ path }) => path === AGENT_FILE),
  );
  return {
    files: made,
    problems,
    warnings,
    index,
    installMembers: listInstallMembers(parts.install),
    release: findSetImage(index, parts.install.spec.imageSetRef?.name),
  };
}

function makeFiles(parts: ClusterParts, given: SiteFile | undefined): readonly SiteFile[] {
  const install = makeInstallConfig(parts);
  const read = given && readSiteDocument(given, AGENT_CONFIG, AGENT_PUBLIC_KEYS);
  // A faulty file is judged as it is.
  const isFaulty = read !== undefined && read.problems.length > 0;
  const { value } = decodeMade(install, AGENT_INSTALL_CONFIG);
  const agent = isFaulty
    ? undefined
    : makeAgentConfig(parts, {
        agent: read,
        ofOverrides: listAgentHosts(value, {}),
        overrides: install.placeOf('platform.baremetal.hosts'),
      });
  return [
    makeFile(INSTALL_FILE, hasHosts(agent ?? read) ? withoutHosts(install) : install),
    ...(agent ? [makeFile(AGENT_FILE, agent)] : given ? [given] : []),
    ...listManifests(parts, listReferences(parts), 'openshift'),
  ];
}

const hasHosts = (agent: Pick<MadeValue, 'value'> | undefined): boolean =>
  ((agent?.value as WrittenAgentConfig | undefined)?.hosts ?? []).length > 0;

/** Overrides have the controllers of all hosts, also of those that agent-config.yaml has; that counts. */
function withoutHosts({ value, placeOf }: MadeValue): MadeValue {
  const { platform, ...others } = objectOrEmpty(value);
  const { baremetal, ...kinds } = objectOrEmpty(platform);
  if (baremetal === undefined) return { value, placeOf };
  const rest = { ...objectOrEmpty(baremetal), hosts: [] };
  return { value: { ...others, platform: { ...kinds, baremetal: rest } }, placeOf };
}

function listReferences({ install }: ClusterParts): Parameters<typeof listManifests>[1] {
  const { manifestsConfigMapRefs = [], manifestsConfigMapRef: single } = install.spec;
  const at = (path: string, name = '') => ({ place: placeIn(install, `spec.${path}`), name });
  return [
    ...manifestsConfigMapRefs.map(({ name }, index) =>
      at(`manifestsConfigMapRefs[${index}]`, name),
    ),
    ...(single ? [at('manifestsConfigMapRef', single.name)] : []),
  ];
}
