import { explainHostName } from '../../base/host-name.ts';
import { SealiftError } from '../../base/errors.ts';
import { isObject, objectOrEmpty } from '../../base/lists.ts';
import { IGNITION_VERSION, readGivenIgnition } from '../../ignition/index.ts';
import { readJsonText, TYPED_JSON } from '../../shape/json-text.ts';
import { explainUnknownMembers, INSTALL_OVERRIDES } from './install-overrides.ts';
import { nameOf, refuseResource, type Resource } from './resources.ts';
import type { CustomValues } from './values.ts';

/*
 * Reads annotations of BareMetalHosts and of an AgentClusterInstall, as a hub does (assisted-service:
 * docs/hive-integration). A medium takes names of hosts and, if it describes its cluster, overrides of
 * install-config.
 */

type ReadHosts = {
  readonly hostnames: NonNullable<CustomValues['hostnames']>;
  readonly installOverrides?: string;
  readonly warnings: readonly string[];
};

const OF_HOST = 'bmac.agent-install.openshift.io/';
const OF_CLUSTER = 'agent-install.openshift.io/';
const HOSTNAME = `${OF_HOST}hostname`;

type Annotation = { readonly resource: Resource; readonly name: string; readonly text: string };

/** Warns of each annotation without a place on media. */
export function readHosts(resources: readonly Resource[]): ReadHosts {
  const annotations = resources.flatMap(listAnnotations);
  for (const annotation of annotations) CHECKS[annotation.name]?.(annotation);
  const named = annotations.filter(hasPlace);
  const withName = new Set(named.map(({ resource }) => resource));
  const overrides = annotations.find(({ name }) => name === INSTALL_OVERRIDES);
  return {
    hostnames: named.map(({ resource, text }) => ({ macAddress: readMac(resource), name: text })),
    ...(overrides && { installOverrides: overrides.text }),
    warnings: [
      ...(overrides ? warnOfOverrides(overrides) : []),
      ...annotations.filter((each) => each !== overrides && !hasPlace(each)).map(explainLoss),
      ...resources
        .filter((resource) => resource.kind === 'BareMetalHost' && !withName.has(resource))
        .map((host) => `${nameOf(host)} has no value for the medium and is ignored`),
    ],
  };
}

const listAnnotations = (resource: Resource): readonly Annotation[] => {
  const prefix = { BareMetalHost: OF_HOST, AgentClusterInstall: OF_CLUSTER }[resource.kind];
  if (prefix === undefined) return [];
  const { annotations } = objectOrEmpty(resource.value['metadata']);
  return Object.entries(objectOrEmpty(annotations))
    .filter(([name]) => name.startsWith(prefix))
    .map(([name, value]) => ({ resource, name, text: String(value) }));
};

const hasPlace = ({ name, resource }: Annotation): boolean =>
  name === HOSTNAME && typeof resource.spec['bootMACAddress'] === 'string';

const readMac = ({ spec }: Resource): string => String(spec['bootMACAddress']);

const explainLoss = ({ resource, name }: Annotation): string =>
  [`annotation ${name} of ${nameOf(resource)} has no place on the medium and is ignored`]
    .concat(Object.hasOwn(REASONS, name) ? (REASONS[name] ?? []) : [])
    .join(': ');

const INSTALLER_ARGS = `${OF_HOST}installer-args`;
const IGNITION_OVERRIDES = `${OF_HOST}ignition-config-overrides`;

/** Agents of a medium read the name, role, disk and BMC of a host, and no more (cmd/agentbasedinstaller/host_config.go). */
const BY_HUB =
  'only a hub gives it to a host; a MachineConfig among the manifests is for all hosts of a role';

const REASONS: Readonly<Record<string, string>> = {
  [HOSTNAME]: 'the host has no spec.bootMACAddress',
  [INSTALLER_ARGS]: BY_HUB,
  [IGNITION_OVERRIDES]: BY_HUB,
};

function warnOfOverrides(annotation: Annotation): readonly string[] {
  const unknown = explainUnknownMembers(objectOrEmpty(parseJson(annotation)));
  if (unknown.length === 0) return [];
  const { name, resource } = annotation;
  return [
    `annotation ${name} of ${nameOf(resource)} has ${unknown.join(', ')}: assisted-service refuses members that its install-config lacks`,
  ];
}

/** Flags of coreos-installer that assisted-service passes on, and characters of their values (pkg/validations). */
const FLAGS: readonly string[] = [
  '--append-karg',
  '--delete-karg',
  '-n',
  '--copy-network',
  '--network-dir',
  '--save-partlabel',
  '--save-partindex',
  '--image-url',
  '--image-file',
];
const FLAG_VALUE = /^[A-Za-z0-9@!#$%*()_+-=//.,";':{}[\]]+$/;

function explainArgument(text: string): string | undefined {
  if (text.startsWith('-')) {
    return FLAGS.includes(text)
      ? undefined
      : `has the flag "${text}", but only ${FLAGS.join(', ')} are allowed`;
  }
  return FLAG_VALUE.test(text)
    ? undefined
    : `has characters in "${text}" that assisted-service refuses`;
}

const MAC = /^(?:[\da-f]{2}:){5}[\da-f]{2}$/i;

/** How the readers of assisted-service check the texts. */
const CHECKS: Readonly<Record<string, (annotation: Annotation) => void>> = {
  // Both become the path and the text of a file.
  [HOSTNAME]: (annotation) => {
    const { resource, text } = annotation;
    const why = explainHostName(text);
    if (why !== undefined) throw refuseText(annotation, why);
    if (hasPlace(annotation) && !MAC.test(readMac(resource))) {
      throw refuseResource(`spec.bootMACAddress of ${nameOf(resource)} is not XX:XX:XX:XX:XX:XX`);
    }
  },
  [INSTALL_OVERRIDES]: (annotation) => {
    if (!isObject(parseJson(annotation))) throw refuseText(annotation, 'is not a JSON object');
  },
  [INSTALLER_ARGS]: (annotation) => {
    const list = parseJson(annotation);
    if (!Array.isArray(list) || !list.every((each) => typeof each === 'string')) {
      throw refuseText(annotation, 'is not a JSON list of strings');
    }
    const why = list.map(explainArgument).find((reason) => reason !== undefined);
    if (why !== undefined) throw refuseText(annotation, why);
  },
  [IGNITION_OVERRIDES]: (annotation) => {
    try {
      readGivenIgnition(annotation.text, 'the override', IGNITION_VERSION);
    } catch (error) {
      if (!(error instanceof SealiftError)) throw error;
      throw refuseText(annotation, `is not an Ignition config: ${error.message}`);
    }
  },
};

function parseJson(annotation: Annotation): unknown {
  const read = readJsonText(annotation.text, TYPED_JSON);
  if (read.why === undefined) return read.value;
  throw refuseText(annotation, read.why);
}

const refuseText = ({ resource, name }: Annotation, problem: string) =>
  refuseResource(`annotation ${name} of ${nameOf(resource)} ${problem}`);
