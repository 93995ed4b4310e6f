import { objectOrEmpty, withoutUndefined } from '../../base/lists.ts';
import type { CustomValues } from './custom-values.ts';
import {
  isNamedBy,
  lacks,
  missingReference,
  nameOf,
  refuseResource,
  type Resource,
} from './resources.ts';

/** Members that values stand for; all others stay in the InfraEnv as they are. */
const STOOD_FOR = [
  'sshAuthorizedKey',
  'pullSecretRef',
  'proxy',
  'additionalNTPSources',
  'ntpSources',
  'additionalTrustBundle',
  'ignitionConfigOverride',
  'kernelArguments',
  'nmStateConfigLabelSelector',
  'mirrorRegistryRef',
  'imageType',
  'clusterRef',
];

/**
 * What an InfraEnv says, and the Secret that it names.
 *
 * @throws ConfigError `customize.resource`
 */
export function readInfraEnv(
  infraEnv: Resource,
  resources: readonly Resource[],
  options: { readonly hasPullSecret: boolean },
): CustomValues {
  const { spec, value } = infraEnv;
  requireTypes(infraEnv);
  const { name, namespace } = objectOrEmpty(value['metadata']);
  const others = Object.entries(spec).filter(([member]) => !STOOD_FOR.includes(member));
  const ntpSources = listTexts(spec['ntpSources'] ?? spec['additionalNTPSources']);
  const { proxy, kernelArguments } = spec;
  return {
    ...withoutUndefined({
      sshKeys: textOf(spec['sshAuthorizedKey'])
        ?.split(/\r?\n/)
        .filter((line) => line.trim() !== ''),
      pullSecret: options.hasPullSecret ? undefined : findPullSecret(infraEnv, resources),
      proxy: proxy === undefined ? undefined : objectOrEmpty(proxy),
      ntpSources: ntpSources.length === 0 ? undefined : ntpSources,
      trustBundle: textOf(spec['additionalTrustBundle']),
      ignitionOverride: textOf(spec['ignitionConfigOverride']),
      kargs: kernelArguments === undefined ? undefined : readKargs(kernelArguments),
    }),
    infraEnv: {
      metadata: withoutUndefined({ name, namespace }),
      spec: Object.fromEntries(others),
    },
  };
}

const isText = (value: unknown): boolean => typeof value === 'string';
const isObject = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isList = (value: unknown): boolean => Array.isArray(value);

/** What the API says of members that are read: what has another type would be lost without a word. */
const TYPES: Readonly<Record<string, readonly [what: string, test: (value: unknown) => boolean]>> =
  {
    sshAuthorizedKey: ['a text', isText],
    additionalTrustBundle: ['a text', isText],
    ignitionConfigOverride: ['a text', isText],
    pullSecretRef: ['an object', isObject],
    proxy: ['an object', isObject],
    nmStateConfigLabelSelector: ['an object', isObject],
    additionalNTPSources: ['a list', isList],
    ntpSources: ['a list', isList],
    kernelArguments: ['a list', isList],
  };

function requireTypes(infraEnv: Resource): void {
  const { spec } = infraEnv;
  for (const [member, [what, test]] of Object.entries(TYPES)) {
    if (spec[member] === undefined || spec[member] === null || test(spec[member])) continue;
    throw refuseResource(`spec.${member} of ${nameOf(infraEnv)} is not ${what}`);
  }
  const { ntpSources, additionalNTPSources } = spec;
  if (ntpSources === undefined || additionalNTPSources === undefined) return;
  throw refuseResource(
    `${nameOf(infraEnv)} has both spec.ntpSources and spec.additionalNTPSources`,
  );
}

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value.trim() !== '' ? value : undefined;

const listTexts = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.map(String) : [];

const SECRET_KEY = '.dockerconfigjson';

function findPullSecret(infraEnv: Resource, resources: readonly Resource[]): string | undefined {
  const { pullSecretRef } = infraEnv.spec;
  if (pullSecretRef === undefined) return undefined;
  const { name } = objectOrEmpty(pullSecretRef);
  const secret = resources.find(isNamedBy(infraEnv, 'Secret', name));
  if (!secret) {
    const where = `pullSecretRef of ${nameOf(infraEnv)}`;
    throw missingReference(
      { kind: 'Secret', name },
      where,
      'add it to the files, or give --pull-secret',
    );
  }
  const { data, stringData } = secret.value;
  const plain = objectOrEmpty(stringData)[SECRET_KEY];
  if (typeof plain === 'string') return plain;
  const encoded = objectOrEmpty(data)[SECRET_KEY];
  if (typeof encoded !== 'string') throw lacks(secret, SECRET_KEY);
  const text = encoded.replaceAll(/\s/g, '');
  if (/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text)) {
    return Buffer.from(text, 'base64').toString('utf8');
  }
  throw refuseResource(`data of ${nameOf(secret)} is not base64`, 'encode it, or use stringData');
}

function readKargs(value: unknown): NonNullable<CustomValues['kargs']> {
  const edits = (Array.isArray(value) ? value : []).map((each) => {
    const { operation, value: karg } = objectOrEmpty(each);
    if (typeof karg === 'string' && karg.trim() === '')
      throw refuseResource('kernelArguments of the InfraEnv has an empty value');
    if (typeof karg === 'string' && (operation === 'append' || operation === 'delete')) {
      return { operation, karg };
    }
    throw refuseResource(
      `kernelArguments of the InfraEnv has the operation ${JSON.stringify(operation)}, and append and delete are known`,
    );
  });
  const of = (wanted: string): readonly string[] =>
    edits.filter(({ operation }) => operation === wanted).map(({ karg }) => karg);
  return { append: of('append'), remove: of('delete') };
}
