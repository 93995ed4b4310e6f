import { ConfigError } from '../../base/errors.ts';
import { objectOrEmpty, withoutUndefined } from '../../base/lists.ts';
import { toRpmName } from '../release/bundle.ts';
import { formatGoYaml } from './go-yaml.ts';
import { INFRA_ENV, parseLiveManifest, PULL_SECRET_MANIFEST } from './live-manifest.ts';
import type { CustomValues } from './values.ts';

/* Owns the manifests that the services of the agent-based installer read. */

type Members = Readonly<Record<string, unknown>>;

/** The label that leads from an InfraEnv to its NMStateConfigs; only this label distinguishes them. */
const NETWORK_LABELS = { 'agent-install.openshift.io/infraenv': 'appliance' };

/** Members of an InfraEnv that a hub reads, and no program on a medium; the installer keeps them. */
export const WITHOUT_EFFECT: readonly string[] = [
  'agentApproval',
  'agentLabels',
  'clusterRef',
  'imageType',
  'ipxeScriptType',
  'networkDiscoveryDelaySeconds',
  'osImageVersion',
];

/** Written as the installer writes it. */
export function configureInfraEnv(text: string, values: CustomValues): string {
  const infraEnv = parseLiveManifest(INFRA_ENV, text);
  const given = values.infraEnv ?? {};
  requireSameArchitecture(objectOrEmpty(infraEnv['spec']), given.spec);
  const { pullSecretRef, ...spec } = withoutTimeServers(objectOrEmpty(infraEnv['spec']), values);
  const selector = hasHosts(values) ? { matchLabels: NETWORK_LABELS } : undefined;
  return formatGoYaml({
    ...infraEnv,
    metadata: { ...objectOrEmpty(infraEnv['metadata']), ...given.metadata },
    spec: {
      ...spec,
      ...withoutUndefined({
        pullSecretRef,
        sshAuthorizedKey: formatSshKeys(values),
        additionalNTPSources: nonEmpty(values.ntpSources),
        ntpSources: nonEmpty(values.exclusiveNtpSources),
        additionalTrustBundle: values.trustBundle,
        proxy: formatProxy(values),
        nmStateConfigLabelSelector: selector,
      }),
      ...given.spec,
    },
  });
}

function requireSameArchitecture(own: Members, given: Members = {}): void {
  const [expected, found] = [own, given].map(({ cpuArchitecture: name }) =>
    typeof name === 'string' && name !== '' ? toRpmName(name) : undefined,
  );
  if (expected === undefined || found === undefined || found === expected) return;
  throw new ConfigError(
    'customize.architecture',
    `the InfraEnv is for ${found}, but the medium is for ${expected}`,
    {
      expected,
      found,
      hint: 'correct spec.cpuArchitecture, or take the medium of that architecture',
    },
  );
}

/** The API refuses an InfraEnv with both kinds of time servers. */
function withoutTimeServers(spec: Members, values: CustomValues): Members {
  const { ntpSources, exclusiveNtpSources } = values;
  if (!nonEmpty(ntpSources) && !nonEmpty(exclusiveNtpSources)) return spec;
  return { ...spec, ntpSources: undefined, additionalNTPSources: undefined };
}

const nonEmpty = (list: readonly string[] = []): readonly string[] | undefined =>
  list.length === 0 ? undefined : list;

const hasHosts = ({ hosts = [] }: CustomValues): boolean => hosts.length > 0;

/** The keys as one text: the installer gives core one entry, regardless of its number of lines. */
export const formatSshKeys = ({ sshKeys = [] }: CustomValues): string | undefined => {
  const lines = sshKeys.filter((key) => key.trim() !== '');
  return lines.length === 0 ? undefined : lines.join('\n');
};

/** Present if there is a proxy: exceptions without a proxy have no meaning. */
export function formatProxy({ proxy = {} }: CustomValues): Members | undefined {
  const { httpProxy = '', httpsProxy = '', noProxy = '' } = proxy;
  if (httpProxy === '' && httpsProxy === '') return undefined;
  const members = Object.entries({ httpProxy, httpsProxy, noProxy });
  return Object.fromEntries(members.filter(([, value]) => value !== ''));
}

/** The Secret of the medium with another pull secret, and the name that the InfraEnv has for it. */
export function configurePullSecret(text: string, values: CustomValues): string {
  const secret = parseLiveManifest(PULL_SECRET_MANIFEST, text);
  const { name } = objectOrEmpty(values.infraEnv?.spec?.['pullSecretRef']);
  const { pullSecret } = values;
  return formatGoYaml({
    ...secret,
    metadata: { ...objectOrEmpty(secret['metadata']), ...withoutUndefined({ name }) },
    ...(pullSecret !== undefined && {
      stringData: { '.dockerconfigjson': formatPullSecret(pullSecret) },
    }),
  });
}

/** Go's encoding of the text that it read: indented by two spaces, keys sorted by their bytes. */
export const formatPullSecret = (text: string): string => formatIndented(JSON.parse(text), '');

function formatIndented(value: unknown, indent: string): string {
  if (typeof value !== 'object' || value === null) return formatScalar(value);
  const inner = `${indent}  `;
  const isList = Array.isArray(value);
  const items = isList
    ? value.map((item) => formatIndented(item, inner))
    : Object.entries(value)
        .toSorted(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
        .map(([key, member]) => `${formatScalar(key)}: ${formatIndented(member, inner)}`);
  const [open, close] = isList ? '[]' : '{}';
  if (items.length === 0) return `${open ?? ''}${close ?? ''}`;
  return `${open ?? ''}\n${inner}${items.join(`,\n${inner}`)}\n${indent}${close ?? ''}`;
}

/** A scalar of JSON without the characters to which HTML gives a meaning. */
const formatScalar = (value: unknown): string =>
  JSON.stringify(value).replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
