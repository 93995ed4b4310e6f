import { objectOrEmpty, withoutUndefined } from '../../base/lists.ts';
import { readSecretText } from '../node/payloads.ts';
import { toRpmName } from '../release/bundle.ts';
import { WITHOUT_EFFECT } from './agent-manifests.ts';
import {
  isNamedBy,
  lacks,
  missingReference,
  nameOf,
  refuseResource,
  type Resource,
} from './resources.ts';
import { explainUnusable, requireUsable, requireValue } from './unusable.ts';
import type { CustomValues } from './values.ts';

/* Reads the values of a site in an InfraEnv and the Secret that it names, and warns of members without effect. */

type Members = Readonly<Record<string, unknown>>;

/** Members that values represent; all others stay in the InfraEnv unchanged. */
const STOOD_FOR = [
  'sshAuthorizedKey',
  'proxy',
  'additionalNTPSources',
  'ntpSources',
  'additionalTrustBundle',
  'ignitionConfigOverride',
  'mirrorRegistryRef',
];

export function readInfraEnv(
  infraEnv: Resource,
  resources: readonly Resource[],
  options: { readonly hasPullSecret: boolean },
): CustomValues {
  const { spec, value } = infraEnv;
  requireOneKindOfServers(infraEnv);
  requireUsable(infraEnv);
  const { proxy, kernelArguments } = spec;
  return {
    ...withoutUndefined({
      sshKeys: keysOf(textOf(spec['sshAuthorizedKey'])),
      pullSecret: options.hasPullSecret ? undefined : findPullSecret(infraEnv, resources),
      proxy: proxy === undefined ? undefined : objectOrEmpty(proxy),
      ntpSources: listTexts(spec['additionalNTPSources']),
      exclusiveNtpSources: listTexts(spec['ntpSources']),
      trustBundle: textOf(spec['additionalTrustBundle']),
      ignitionOverride: textOf(spec['ignitionConfigOverride']),
      kargs: kernelArguments === undefined ? undefined : readKargs(kernelArguments),
    }),
    infraEnv: keepInfraEnv(value),
  };
}

/** An InfraEnv with the name that RPM has for its architecture, without members that values represent. */
function keepInfraEnv(value: Members): NonNullable<CustomValues['infraEnv']> {
  const { cpuArchitecture, ...spec } = objectOrEmpty(value['spec']);
  const others = Object.entries(spec).filter(([member]) => !STOOD_FOR.includes(member));
  const name = typeof cpuArchitecture === 'string' ? toRpmName(cpuArchitecture) : undefined;
  return {
    metadata: objectOrEmpty(value['metadata']),
    spec: { ...withoutUndefined({ cpuArchitecture: name }), ...Object.fromEntries(others) },
  };
}

function requireOneKindOfServers(infraEnv: Resource): void {
  const { ntpSources, additionalNTPSources } = infraEnv.spec;
  if (ntpSources === undefined || additionalNTPSources === undefined) return;
  throw refuseResource(
    `${nameOf(infraEnv)} has both spec.ntpSources and spec.additionalNTPSources`,
  );
}

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value.trim() !== '' ? value : undefined;

/** The keys as they are written, as the installer keeps them, without the carriage returns of line breaks. */
const keysOf = (text: string | undefined): readonly string[] | undefined =>
  text === undefined ? undefined : [text.replaceAll('\r\n', '\n')];

const listTexts = (value: unknown): readonly string[] | undefined =>
  Array.isArray(value) && value.length > 0 ? value.map(String) : undefined;

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
  const read = readSecretText(secret.value, SECRET_KEY);
  if (!read) throw lacks(secret, SECRET_KEY);
  const { member, text } = read;
  const explain = explainUnusable.pullSecret;
  requireValue(secret, `${member}.${SECRET_KEY}`, { value: text, explain });
  return text;
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
      `kernelArguments of the InfraEnv has the operation ${JSON.stringify(operation)}, but only append and delete are known`,
    );
  });
  const of = (wanted: string): readonly string[] =>
    edits.filter(({ operation }) => operation === wanted).map(({ karg }) => karg);
  return { append: of('append'), remove: of('delete') };
}

export function warnOfInfraEnv({ spec }: Resource): readonly string[] {
  return [
    ...(spec['mirrorRegistryRef'] === undefined
      ? []
      : ['spec.mirrorRegistryRef of the InfraEnv is ignored: the medium has its own mirrors']),
    ...warnOfMembers(
      'InfraEnv',
      Object.keys(spec).filter((member) => WITHOUT_EFFECT.includes(member)),
    ),
    ...(spec['ntpSources'] === undefined
      ? []
      : [
          'spec.ntpSources of the InfraEnv needs a release that knows exclusive time servers: others ignore them',
        ]),
  ];
}

export function warnOfMembers(kind: string, members: readonly string[]): readonly string[] {
  if (members.length === 0) return [];
  const names = members.map((member) => `spec.${member}`).join(', ');
  return [
    `${names} of the ${kind} ${members.length === 1 ? 'has' : 'have'} no effect on the medium`,
  ];
}
