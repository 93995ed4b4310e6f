import { objectOrEmpty, withoutUndefined } from '../../base/lists.ts';
import { parse } from '../../shape/parse-text.ts';
import { formatManifest } from '../node/manifests/extra-manifests.ts';
import type { CustomValues } from './custom-values.ts';

type Members = Readonly<Record<string, unknown>>;

/** Where the agent services read what they register. */
export const INFRA_ENV = '/etc/assisted/manifests/infraenv.yaml';
export const PULL_SECRET_MANIFEST = '/etc/assisted/manifests/pull-secret.yaml';

/** The label that leads from an InfraEnv to its NMStateConfigs; they are told apart by nothing else. */
const NETWORK_LABELS = { 'agent-install.openshift.io/infraenv': 'appliance' };

/** The InfraEnv of the medium with the values, in the form that the installer writes. */
export function configureInfraEnv(text: string, values: CustomValues): string {
  const infraEnv = objectOrEmpty(parse(text));
  const given = values.infraEnv ?? {};
  const { pullSecretRef, ...spec } = objectOrEmpty(infraEnv['spec']);
  const selector = hasHosts(values) ? { matchLabels: NETWORK_LABELS } : undefined;
  return formatManifest({
    ...infraEnv,
    metadata: { ...objectOrEmpty(infraEnv['metadata']), ...given.metadata },
    spec: {
      ...spec,
      ...withoutUndefined({
        pullSecretRef,
        sshAuthorizedKey: formatSshKeys(values),
        additionalNTPSources: values.ntpSources?.length ? values.ntpSources : undefined,
        additionalTrustBundle: values.trustBundle,
        proxy: formatProxy(values),
        nmStateConfigLabelSelector: selector,
      }),
      ...given.spec,
    },
  });
}

const hasHosts = ({ hosts = [] }: CustomValues): boolean => hosts.length > 0;

/** As one text: the installer gives core one entry, however many lines it has. */
export const formatSshKeys = ({ sshKeys = [] }: CustomValues): string | undefined => {
  const lines = sshKeys.map((key) => key.trim()).filter((key) => key !== '');
  return lines.length === 0 ? undefined : lines.join('\n');
};

/** Present where there is a proxy: exceptions from none say nothing. */
export function formatProxy({ proxy = {} }: CustomValues): Members | undefined {
  const { httpProxy = '', httpsProxy = '', noProxy = '' } = proxy;
  if (httpProxy === '' && httpsProxy === '') return undefined;
  const members = Object.entries({ httpProxy, httpsProxy, noProxy });
  return Object.fromEntries(members.filter(([, value]) => value !== ''));
}

/** The Secret of the medium with another pull secret, and the name that the InfraEnv has for it. */
export function configurePullSecret(text: string, values: CustomValues): string {
  const secret = objectOrEmpty(parse(text));
  const { name } = objectOrEmpty(values.infraEnv?.spec?.['pullSecretRef']);
  const { pullSecret } = values;
  return formatManifest({
    ...secret,
    metadata: { ...objectOrEmpty(secret['metadata']), ...withoutUndefined({ name }) },
    ...(pullSecret !== undefined && {
      stringData: { '.dockerconfigjson': formatPullSecret(pullSecret) },
    }),
  });
}

/** Go's encoding of what it read: keys sorted, two spaces, and no character that HTML gives a meaning. */
export const formatPullSecret = (text: string): string =>
  JSON.stringify(sortKeys(JSON.parse(text)), null, 2).replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, member]) => [key, sortKeys(member)]));
}
