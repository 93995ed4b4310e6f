import { explainHostName } from '../../base/host-name.ts';
import { SealiftError } from '../../base/errors.ts';
import { isObject, objectOrEmpty } from '../../base/lists.ts';
import { IGNITION_VERSION, parseIgnition } from '../../ignition/index.ts';
import { nameOf, refuseResource, type Resource } from './resources.ts';
import type { CustomValues } from './values.ts';

/*
 * Reads what a hub does for one host or one cluster beside the networks: annotations of BareMetalHosts and of an
 * AgentClusterInstall (assisted-service: docs/hive-integration). A medium has a place for the names of hosts alone.
 */

type ReadHosts = {
  readonly hostnames: NonNullable<CustomValues['hostnames']>;
  readonly warnings: readonly string[];
};

const OF_HOST = 'bmac.agent-install.openshift.io/';
const OF_CLUSTER = 'agent-install.openshift.io/';
const HOSTNAME = `${OF_HOST}hostname`;

type Annotation = { readonly resource: Resource; readonly name: string; readonly text: string };

/**
 * The names of hosts, and a warning for each annotation without a place on the medium.
 *
 * @throws ConfigError `customize.resource` for an annotation that its reader would refuse
 */
export function readHosts(resources: readonly Resource[]): ReadHosts {
  const annotations = resources.flatMap(listAnnotations);
  for (const annotation of annotations) CHECKS[annotation.name]?.(annotation);
  const named = annotations.filter(hasPlace);
  return {
    hostnames: named.map(({ resource, text }) => ({ macAddress: readMac(resource), name: text })),
    warnings: [
      ...annotations.filter((each) => !hasPlace(each)).map(explainLoss),
      ...resources
        .filter(
          ({ kind, name }) =>
            kind === 'BareMetalHost' && !named.some(({ resource }) => resource.name === name),
        )
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
  `annotation ${name} of ${nameOf(resource)} has no place on the medium and is ignored` +
  (name === HOSTNAME ? ': the host has no spec.bootMACAddress' : '');

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
  [`${OF_CLUSTER}install-config-overrides`]: (annotation) => {
    if (!isObject(parseJson(annotation))) throw refuseText(annotation, 'is not a JSON object');
  },
  [`${OF_HOST}installer-args`]: (annotation) => {
    const list = parseJson(annotation);
    if (Array.isArray(list) && list.every((each) => typeof each === 'string')) return;
    throw refuseText(annotation, 'is not a JSON list of strings');
  },
  [`${OF_HOST}ignition-config-overrides`]: (annotation) => {
    try {
      parseIgnition(annotation.text, 'the override', IGNITION_VERSION);
    } catch (error) {
      if (!(error instanceof SealiftError)) throw error;
      throw refuseText(annotation, `is no Ignition config: ${error.message}`);
    }
  },
};

function parseJson(annotation: Annotation): unknown {
  try {
    return JSON.parse(annotation.text);
  } catch {
    throw refuseText(annotation, 'is not JSON');
  }
}

const refuseText = ({ resource, name }: Annotation, problem: string) =>
  refuseResource(`annotation ${name} of ${nameOf(resource)} ${problem}`);
