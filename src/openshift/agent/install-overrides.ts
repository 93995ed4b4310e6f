import { isObject, objectOrEmpty } from '../../base/lists.ts';
import { suggestName } from '../../base/text/words.ts';
import { decodeFileContent, type File, parseResolved } from '../../ignition/index.ts';
import { decodeJson, ifFaultless } from '../../shape/decode.ts';
import { FREE, mapping } from '../../shape/shape.ts';
import { formatGoYaml } from './go-yaml.ts';
import { AGENT_CLUSTER_INSTALL, parseLiveManifest } from './live-manifest.ts';
import type { CustomValues } from './values.ts';

/*
 * Owns the overrides of install-config, an annotation of the AgentClusterInstall that agents register
 * (assisted-service: cmd/agentbasedinstaller/register.go). Only media that describe their cluster have one.
 */

type Members = Readonly<Record<string, unknown>>;

export const INSTALL_OVERRIDES = 'agent-install.openshift.io/install-config-overrides';

/**
 * Merges the overrides of a site over those of the medium. If the medium has no overrides, they stay as they
 * are written. A file without a resource, as media have that add nodes, stays as it is.
 */
export function configureInstall(text: string, overrides: string): string {
  const install = parseLiveManifest(AGENT_CLUSTER_INSTALL, text);
  if (install['kind'] !== 'AgentClusterInstall') return text;
  const metadata = objectOrEmpty(install['metadata']);
  const annotations = objectOrEmpty(metadata['annotations']);
  const own = annotations[INSTALL_OVERRIDES];
  const merged = typeof own === 'string' ? mergeTexts(own, overrides) : overrides;
  return formatGoYaml({
    ...install,
    metadata: { ...metadata, annotations: { ...annotations, [INSTALL_OVERRIDES]: merged } },
  });
}

const OVERRIDES = mapping(FREE);

function mergeTexts(own: string, given: string): string {
  const [under, over] = [own, given].map((text) => ifFaultless(decodeJson(OVERRIDES, text)) ?? {});
  return JSON.stringify(mergeMembers(under ?? {}, over ?? {}));
}

/** Objects member by member, as Go decodes one JSON text after another into the same value. */
const mergeMembers = (under: Members, over: Members): Members => ({
  ...under,
  ...Object.fromEntries(
    Object.entries(over).map(([name, value]) => {
      const below = Object.hasOwn(under, name) ? under[name] : undefined;
      return [name, isObject(below) && isObject(value) ? mergeMembers(below, value) : value];
    }),
  ),
});

/** A warning for overrides that the config of a medium has no place for. */
export function listWithoutPlace(
  config: string | undefined,
  { installOverrides }: CustomValues,
): readonly string[] {
  if (installOverrides === undefined) return [];
  const { storage } =
    config === undefined ? {} : parseResolved(config, 'the configured Ignition config');
  if ((storage?.files ?? []).some(hasOverrides)) return [];
  return [
    `${INSTALL_OVERRIDES} has no place on the medium and is ignored: the cluster is described at the console, ` +
      'or by a configuration image',
  ];
}

const hasOverrides = (file: File): boolean =>
  file.path === AGENT_CLUSTER_INSTALL &&
  decodeFileContent(file)?.toString('utf8').includes(INSTALL_OVERRIDES) === true;

/** Members of an install-config that assisted-service 4.22 has (`InstallerConfigBaremetal`); it refuses others. */
const MEMBERS: readonly string[] = [
  'additionalTrustBundle',
  'additionalTrustBundlePolicy',
  'apiVersion',
  'arbiter',
  'baseDomain',
  'bootstrapInPlace',
  'capabilities',
  'compute',
  'controlPlane',
  'cpuPartitioningMode',
  'featureGates',
  'featureSet',
  'fips',
  'imageContentSources',
  'imageDigestSources',
  'metadata',
  'networking',
  'osImageStream',
  'platform',
  'proxy',
  'pullSecret',
  'sshKey',
];

/** Members that the assisted service of a release may not know, each with a guess. Go matches them without case. */
export const explainUnknownMembers = (overrides: Members): readonly string[] =>
  Object.keys(overrides)
    .filter((name) => !MEMBERS.some((known) => known.toLowerCase() === name.toLowerCase()))
    .map((name) => {
      const guess = suggestName(name, MEMBERS);
      return `"${name}"${guess === undefined ? '' : ` (${guess})`}`;
    });
