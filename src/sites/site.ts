import {
  DiskError,
  type DocumentProblem,
  InterruptedError,
  SealiftError,
  type FileProblem,
} from '../base/errors.ts';
import { withoutUndefined } from '../base/lists.ts';
import { redactAddresses } from '../base/text/redact.ts';
import type { HostNetwork } from '../nmstate/index.ts';
import type { AgentCluster } from '../openshift/agent/agent-cluster.ts';
import type { MadeValue } from '../shape/document.ts';
import type { DigestSource, InstallationProxy } from '../openshift/installation/mirrors.ts';

/** Names of the files of a site, as openshift-install reads them. */
export const INSTALL_FILE = 'install-config.yaml';
export const AGENT_FILE = 'agent-config.yaml';
export const IMAGE_BASED_FILE = 'image-based-config.yaml';

/** The folder of the manifests of a site, by its kind. */
export const MANIFESTS_OF = { 'agent': 'openshift', 'image-based': 'extra-manifests' } as const;

/* Owns the types of a site: its unread inputs, its checked form, and the findings that concern one site. */

/** A file of a site's inputs, out of a folder, an archive or a filled template. */
export type SiteFile = {
  /** Path below the site's folder, `/` between names: `install-config.yaml`, `extra-manifests/a.yaml`. */
  readonly path: string;
  /** A made file makes them each time that they are read. */
  readonly bytes: Uint8Array;
  /** The file's name in problems: a path, `sites.zip/alpha/install-config.yaml`, `sites.csv:12`. */
  readonly shownAs: string;
  /** Base of relative paths in `file:` references; absent inside an archive. */
  readonly directory?: string;
  /** Present for a file that was made of resources, and is read in place of its bytes. */
  readonly made?: MadeValue;
};

/** The inputs of one configuration ISO, not read yet. */
export type SiteInput = {
  /** Name of the folder or of the row, which is also the name of its ISO. */
  readonly name: string;
  readonly files: readonly SiteFile[];
  /** True if the files have resources of Kubernetes, of which those of a site are made. */
  readonly isOfResources?: boolean;
  /** Name of the resource that is the site, if the files have several. */
  readonly root?: string;
  /** Members of an AgentClusterInstall that no file of a site can say. */
  readonly installMembers?: Readonly<Record<string, unknown>>;
  /** Release image of the ClusterImageSet that the resources of the site refer to. */
  readonly release?: string;
  /** The documents that the site was made of; absent: all of its files. */
  readonly madeOf?: readonly SiteFile[];
  /** Found while the files were made of resources. */
  readonly problems?: readonly DocumentProblem[];
  readonly warnings?: readonly DocumentProblem[];
};

/** The parts of install-config.yaml that reach a configuration ISO, as written: left-out keys stay absent. */
export type SiteInstallConfig = {
  readonly clusterName: string;
  readonly baseDomain: string;
  readonly sshKey: string;
  readonly pullSecret: string;
  readonly proxy?: InstallationProxy;
  readonly additionalTrustBundle?: string;
  readonly additionalTrustBundlePolicy?: string;
  /** CIDRs in the user's order. */
  readonly machineNetworks?: readonly string[];
  /** The first of them, present if the seed is known to read no others. */
  readonly machineNetwork?: string;
  /** Present, even if empty, when the key is present. */
  readonly imageDigestSources?: readonly DigestSource[];
};

export type SiteImageBasedConfig = {
  readonly additionalNTPSources: readonly string[];
  readonly hostname: string;
  /** Normalised YAML text; absent when there is no network configuration. */
  readonly networkConfig?: string;
  readonly releaseRegistry?: string;
  readonly clusterId?: string;
  readonly infraId?: string;
  readonly nodeLabels: Readonly<Record<string, string>>;
};

/** A site whose inputs passed every check for a single site. */
export type Site = ImageBasedSite | AgentSite;

/** A cluster of several nodes, or of one, that agents install from a live ISO. */
export type AgentSite = {
  readonly kind: 'agent';
  readonly name: string;
  readonly cluster: AgentCluster;
};

/** The names that identify the cluster of a site. */
export const nameCluster = (
  site: Site,
): { readonly clusterName: string; readonly baseDomain: string } => {
  if (site.kind === 'agent') {
    const { name: clusterName, baseDomain } = site.cluster;
    return { clusterName, baseDomain };
  }
  const { clusterName, baseDomain } = site.install;
  return { clusterName, baseDomain };
};

/** The networks of the hosts that have one. */
export const listHostNetworks = ({ hosts }: AgentCluster): readonly HostNetwork[] =>
  hosts.flatMap(({ network, interfaces }) =>
    network === undefined
      ? []
      : [
          {
            get networkConfig() {
              return network.text;
            },
            value: network.value,
            interfaces: interfaces.map(({ name = '', macAddress }) => ({ name, macAddress })),
          },
        ],
  );

/** A single node that is installed from a seed image. */
export type ImageBasedSite = {
  readonly kind: 'image-based';
  readonly name: string;
  readonly install: SiteInstallConfig;
  readonly imageBased: SiteImageBasedConfig;
  /** Sorted by name, bytes verbatim. */
  readonly extraManifests: readonly { readonly name: string; readonly bytes: Uint8Array }[];
};

/** True if the error concerns one site: a full disk or an abort concerns all sites, a bug every run. */
export const isOfOneSite = (error: unknown): error is SealiftError =>
  error instanceof SealiftError &&
  !(error instanceof DiskError || error instanceof InterruptedError);

/** A problem of the site that describes why a valid site got no ISO. */
export const findingOfError = (file: string, error: SealiftError): FileProblem => {
  const { code, message, expected, found, hint } = error;
  const values = {
    expected: expected && redactAddresses(expected),
    found: found && redactAddresses(found),
  };
  return {
    severity: 'error',
    code,
    file,
    problem: redactAddresses(`${message} [${code}]`),
    ...withoutUndefined({ ...values, hint }),
  };
};

export const warnOfFile = (file: string, problem: string, hint?: string): FileProblem => ({
  severity: 'warning',
  code: 'sites.output',
  file,
  problem,
  ...withoutUndefined({ hint }),
});
