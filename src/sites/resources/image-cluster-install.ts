import type { DocumentProblem } from '../../base/errors.ts';
import { append, withoutUndefined } from '../../base/lists.ts';
import { unlessEmpty } from '../../base/text/words.ts';
import { decodeYaml, reportElsewhere, type ConfigDocument } from '../../shape/document.ts';
import { FREE, LEFT_OUT, list, partial, type Plain, TEXT, type TypeOf } from '../../shape/shape.ts';
import { PUBLIC_KEYS } from '../documents.ts';
import {
  type FoundResource,
  type ResourceIndex,
  indexResources,
  readFound,
  readResourceTexts,
} from './find.ts';
import { findSetImage } from './references.ts';
import { convertSpec } from './instance.ts';
import type { Made } from './make.ts';
import { IMAGE_INSTALL } from './roots.ts';
import { type Conversion, REFERENCE, type SiteFlow } from './shape.ts';

/*
 * Owns ImageClusterInstalls as inputs (extensions.hive.openshift.io/v1alpha1), with the ClusterDeployment and the
 * BareMetalHost that they name: they are read as the ClusterInstance that a hub would have made them of.
 */

const API_VERSION = 'extensions.hive.openshift.io/v1alpha1';

const INSTALL = partial(
  {
    apiVersion: TEXT,
    kind: TEXT,
    metadata: FREE,
    status: FREE,
    spec: partial({
      clusterDeploymentRef: REFERENCE,
      imageSetRef: REFERENCE,
      bareMetalHostRef: REFERENCE,
      hostname: TEXT,
      sshKey: TEXT,
      nodeIP: TEXT,
      machineNetwork: TEXT,
      machineNetworks: list(partial({ cidr: TEXT })),
      proxy: partial({ httpProxy: TEXT, httpsProxy: TEXT, noProxy: TEXT }),
      additionalNTPSources: list(TEXT),
      imageDigestSources: list(
        partial({ source: TEXT, mirrors: list(TEXT), mirrorSourcePolicy: TEXT }),
      ),
      caBundleRef: REFERENCE,
      extraManifestsRefs: list(REFERENCE),
      clusterMetadata: partial({ clusterID: TEXT, infraID: TEXT }, LEFT_OUT),
    }),
  },
  { others: 'warned' },
);

const DEPLOYMENT = partial(
  { spec: partial({ clusterName: TEXT, baseDomain: TEXT, pullSecretRef: REFERENCE }, LEFT_OUT) },
  LEFT_OUT,
);

const HOST = partial(
  { spec: partial({ preprovisioningNetworkDataName: TEXT }, LEFT_OUT) },
  LEFT_OUT,
);

export function convertImageInstall(
  resource: FoundResource,
  resources: readonly FoundResource[],
  asked: SiteFlow | undefined,
): Made {
  const index = indexResources(resources, resource.namespace);
  const install = readFound(resource, INSTALL);
  if (install.isBroken) return { files: [], problems: install.problems, warnings: [], index };
  const problems = [...install.problems, ...checkInstall(install, asked)];
  const warnings = [...install.warnings, ...warnOfInstall(install)];
  const { find } = index;
  const parts = findParts(install, find, problems);
  const conversion: Conversion = {
    ...toInstance(parts),
    index,
    problems,
    warnings,
    flow: 'image-based',
    document: { ...install, value: {}, ...placeInParts(parts) },
    more: listMore(parts, index),
  };
  return { files: convertSpec(conversion), problems, warnings, index };
}

type Install = ConfigDocument<TypeOf<typeof INSTALL>>;

const specOf = ({ value }: Install): NonNullable<Install['value']['spec']> => value.spec ?? {};

function checkInstall(install: Install, asked: SiteFlow | undefined): readonly DocumentProblem[] {
  const { value, report } = install;
  const { imageSetRef, machineNetwork = '', machineNetworks = [] } = specOf(install);
  const [first] = machineNetworks;
  const isOther = machineNetwork !== '' && first !== undefined && first.cidr !== machineNetwork;
  return [
    ...(value.apiVersion === API_VERSION
      ? []
      : [report('apiVersion', `an ${IMAGE_INSTALL} has the version ${API_VERSION}`)]),
    ...(asked === 'agent'
      ? [report('kind', `an ${IMAGE_INSTALL} is for the flow image-based, but --flow is agent`)]
      : []),
    ...(imageSetRef?.name === undefined
      ? [report('spec', 'Required value: imageSetRef names the release of the seed')]
      : []),
    ...(isOther ? [report('spec.machineNetwork', 'contradicts machineNetworks[0]')] : []),
  ];
}

const warnOfInstall = (install: Install): readonly DocumentProblem[] =>
  specOf(install).nodeIP === undefined
    ? []
    : [
        install.report(
          'spec.nodeIP',
          'nodeIP has no effect: the node chooses it by machineNetworks',
        ),
      ];

type Parts = {
  readonly install: Install;
  readonly deployment?: ConfigDocument<TypeOf<typeof DEPLOYMENT>>;
  readonly host?: ConfigDocument<TypeOf<typeof HOST>>;
  readonly network?: Plain;
};

/** The other resources of a node; a missing one is a problem of the resource that names it. */
function findParts(
  install: Install,
  find: ResourceIndex['find'],
  problems: DocumentProblem[],
): Parts {
  const { clusterDeploymentRef, bareMetalHostRef } = specOf(install);
  const follow = (kind: string, path: string, name: string | undefined) => {
    const found = name === undefined ? undefined : find(kind, name);
    const why = `${kind} "${name ?? ''}" is not among the files of the site`;
    if (!found) problems.push(install.report(path, why));
    return found;
  };
  const deployment = follow(
    'ClusterDeployment',
    'spec.clusterDeploymentRef',
    clusterDeploymentRef?.name,
  );
  const host =
    bareMetalHostRef && follow('BareMetalHost', 'spec.bareMetalHostRef', bareMetalHostRef.name);
  const read = host && readFound(host, HOST);
  return {
    install,
    ...withoutUndefined({
      deployment: deployment && readFound(deployment, DEPLOYMENT),
      host: read,
      network: read && readNetwork(read, find, problems),
    }),
  };
}

function readNetwork(
  { value, report }: NonNullable<Parts['host']>,
  find: ResourceIndex['find'],
  problems: DocumentProblem[],
): Plain | undefined {
  const name = value.spec?.preprovisioningNetworkDataName;
  if (name === undefined) return undefined;
  const secret = find('Secret', name);
  const text = secret && readResourceTexts(secret).get('nmstate');
  if (!secret || text === undefined) {
    const why = `Secret "${name}" with the key nmstate is not among the files of the site`;
    problems.push(report('spec.preprovisioningNetworkDataName', why));
    return undefined;
  }
  const file = `${secret.file.shownAs}#nmstate`;
  const document = decodeYaml({ text, file, publicKeys: PUBLIC_KEYS }, FREE);
  append(problems, document.problems);
  return document.isBroken ? undefined : document.value;
}

/** As the ClusterInstance of the node would be read. */
function toInstance({ install, deployment, network }: Parts): Pick<Conversion, 'spec' | 'nodes'> {
  const { spec: cluster = {} } = deployment?.value ?? {};
  const spec = specOf(install);
  const { machineNetwork, machineNetworks } = spec;
  const { proxy, additionalNTPSources, caBundleRef, extraManifestsRefs } = spec;
  const old = machineNetwork === undefined ? undefined : [{ cidr: machineNetwork }];
  return {
    spec: withoutUndefined({
      ...cluster,
      sshPublicKey: spec.sshKey,
      machineNetwork: machineNetworks ?? old,
      proxy,
      additionalNTPSources,
      caBundleRef,
      extraManifestsRefs,
    }),
    nodes: [
      withoutUndefined({
        hostName: spec.hostname,
        nodeNetwork: network === undefined ? undefined : { config: network },
      }),
    ],
  };
}

function listMore({ install }: Parts, index: ResourceIndex): NonNullable<Conversion['more']> {
  const { imageDigestSources, clusterMetadata, imageSetRef } = specOf(install);
  const image = findSetImage(index, imageSetRef?.name);
  return {
    install: withoutUndefined({
      imageDigestSources: imageDigestSources?.map(({ mirrorSourcePolicy, ...source }) =>
        withoutUndefined({ ...source, sourcePolicy: mirrorSourcePolicy }),
      ),
    }),
    imageBased: withoutUndefined({
      releaseRegistry: image?.split('/')[0],
      cluster_id: unlessEmpty(clusterMetadata?.clusterID),
      infra_id: unlessEmpty(clusterMetadata?.infraID),
    }),
  };
}

/** The members of a ClusterInstance in the resources of the node. */
const PLACES: readonly (readonly [
  RegExp,
  part: 'install' | 'deployment' | 'host',
  path: string,
])[] = [
  [/^spec\.(clusterName|baseDomain|pullSecretRef).*/, 'deployment', 'spec.$1'],
  [/^spec\.sshPublicKey.*/, 'install', 'spec.sshKey'],
  [/^spec\.machineNetwork/, 'install', 'spec.machineNetworks'],
  [/^spec\.nodes\[0\]\.hostName.*/, 'install', 'spec.hostname'],
  [/^spec\.nodes\[0\]\.nodeNetwork.*/, 'host', 'spec.preprovisioningNetworkDataName'],
  [/^spec\.installConfigOverrides.*/, 'install', 'spec.imageDigestSources'],
];

/** Reports problems at the resource that has the value. */
function placeInParts(parts: Parts): Pick<Conversion['document'], 'report' | 'lineOf'> {
  const locate = (path: string) => {
    const [written, part = 'install', to = path] = PLACES.find(([each]) => each.test(path)) ?? [];
    return {
      document: parts[part] ?? parts.install,
      path: written ? path.replace(written, to) : path,
    };
  };
  return reportElsewhere(locate);
}
