import { statSync } from 'node:fs';
import { dirname } from 'node:path';
import { digestOf, type Digest } from '../../base/digest.ts';
import { digestFileSync, unlessAbsent } from '../../base/disk/files.ts';
import { maxOf } from '../../base/lists.ts';
import { readVersion } from '../../base/program.ts';
import { encodeSmallIso } from '../../iso/index.ts';
import { proveImage, toProofWord } from '../../media/proof.ts';
import { readValidity } from '../identity/certificates.ts';
import { CONFIG_IMAGE_LABEL } from '../../openshift/agent/live-system.ts';
import {
  formatState,
  type KubeconfigSite,
  renderKubeconfig,
  type RetainedIdentity,
  SIGNER_NAMES,
  type SignerName,
} from '../identity/identity.ts';
import { nameCluster, type Site } from '../site.ts';
import type { SitePlaces } from '../state/generations.ts';
import type { ProvidedIdentity } from '../state/provide.ts';
import type { NewFiles } from '../state/writer.ts';
import {
  type AgentImage,
  type AgentImageParts,
  planAgentImage,
  renderInstallerState,
  SIGNERS_ON_IMAGE,
} from './agent-image.ts';
import { CONFIG_VOLUME_ID, planConfigTree } from './tree.ts';

/*
 * Main file of composing: a site and its identity come in, and the files of its outputs leave, not
 * written yet. It must not know how an identity is chosen or how files are written.
 */

export type ComposedIso = {
  readonly digest: Digest;
  /** Bytes. */
  readonly size: number;
  readonly clusterId: string;
  readonly infraId: string;
  /** Number of the generation of keys that is on it. */
  readonly generation: number;
  /** Period in which every certificate is valid: ISO 8601. */
  readonly validity: { readonly notBefore: string; readonly notAfter: string };
};

/** Digests of a site's outputs; the state is the generation that was used. */
export type SiteOutputs = Readonly<Record<'iso' | 'kubeconfig' | 'password' | 'state', Digest>> & {
  /** Only of a cluster that agents install. */
  readonly installerState?: Digest;
};

type ComposeSite = {
  readonly places: SitePlaces;
  readonly provided: ProvidedIdentity;
  readonly retained?: RetainedIdentity | undefined;
  /** Only for a cluster that agents install. */
  readonly image?: AgentImageParts | undefined;
};

/** The state appears first: if the process is killed at any moment, the same keys are used again. */
export type ComposedSite = NewFiles & {
  readonly made: ComposedIso;
  readonly outputs: SiteOutputs;
  /** True if identical files already exist, byte by byte. */
  readonly isThere: boolean;
  /** Contents that may stop the installation. */
  readonly cautions: readonly string[];
};

/**
 * Composes the ISO and the files next to it, not written yet. Same inputs and same state give the same bytes.
 *
 * @throws ConfigError `layout.name-too-long`
 */
export function composeSite(site: Site, options: ComposeSite): ComposedSite {
  const { places, provided } = options;
  const { identity } = provided.state;
  const { volumeId, tree, cluster, cautions, installerState } = planImage(site, options);
  const kubeconfig = renderKubeconfig(cluster, identity);
  const iso = encodeSmallIso({ volumeId, epoch: identity.madeAt, ...tree });
  proveImage(iso, { product: 'config-iso', program: readVersion(), of: toProofWord(site.name) });
  const { text: password } = identity.password;
  const outputs = {
    state: digestOf(formatState(provided.state)),
    kubeconfig: digestOf(kubeconfig),
    password: digestOf(password),
    iso: digestOf(iso),
    ...(installerState !== undefined && { installerState: digestOf(installerState) }),
  };
  const made = {
    digest: outputs.iso,
    size: iso.length,
    ...describeIdentity(provided, site.kind === 'agent' ? SIGNERS_ON_IMAGE : SIGNER_NAMES),
  };
  const isThere = hasVisible(places, outputs);
  const files = [
    { path: places.kubeconfig, data: kubeconfig },
    { path: places.password, data: password },
    ...(installerState === undefined
      ? []
      : [{ path: places.installerState, data: installerState }]),
    { path: places.iso, data: iso },
  ];
  return {
    shownAs: places.iso,
    directories: listDirectories(places),
    state: provided.files,
    files: isThere ? [] : files,
    made,
    outputs,
    isThere,
    cautions,
  };
}

type PlannedImage = Omit<AgentImage, 'cautions'> &
  Pick<ComposedSite, 'cautions'> & {
    readonly volumeId: string;
    readonly cluster: KubeconfigSite;
    readonly installerState?: string;
  };

function planImage(site: Site, { provided, retained, image }: ComposeSite): PlannedImage {
  const { identity } = provided.state;
  if (site.kind === 'image-based') {
    const tree = planConfigTree(site, identity, retained);
    return { volumeId: CONFIG_VOLUME_ID, tree, cluster: site.install, cautions: [] };
  }
  if (image === undefined) throw new Error(`${site.name} is composed without its medium`);
  const { cluster } = site;
  return {
    ...planAgentImage(cluster, identity, image),
    volumeId: CONFIG_IMAGE_LABEL,
    cluster: nameCluster(site),
    installerState: renderInstallerState(cluster, identity),
  };
}

/** Reports whether the outputs of a site exist, byte by byte, with its generation of this number. */
export const hasOutputs = (places: SitePlaces, outputs: SiteOutputs, generation: number): boolean =>
  isThere(places.generation(generation), outputs.state) && hasVisible(places, outputs);

const hasVisible = (places: SitePlaces, outputs: SiteOutputs): boolean =>
  (['iso', 'kubeconfig', 'password', 'installerState'] as const).every((name) => {
    const wanted = outputs[name];
    return wanted === undefined || isThere(places[name], wanted);
  });

/** A pipe of that name is not opened: perhaps no process ever writes to it. */
const isThere = (path: string, wanted: Digest): boolean =>
  unlessAbsent(() => (statSync(path).isFile() ? digestFileSync(path) : undefined)) === wanted;

/** Lists the directories between the folder of all sites and the files of one. */
function listDirectories({ iso, kubeconfig }: SitePlaces): readonly string[] {
  const listed: string[] = [];
  for (let path = dirname(kubeconfig); path !== dirname(iso); path = dirname(path)) {
    listed.unshift(path);
  }
  return listed;
}

/** @param names of the signers that the outputs of the site have */
function describeIdentity(
  { number, state: { identity } }: ProvidedIdentity,
  names: readonly SignerName[],
): Omit<ComposedIso, 'digest' | 'size'> {
  const { clusterId, infraId, signers, adminClient } = identity;
  const all = [...names.map((name) => signers[name]), adminClient].map(({ certificate }) =>
    readValidity(certificate),
  );
  const validity = {
    notBefore: new Date(maxOf(all.map(({ notBefore }) => notBefore))).toISOString(),
    notAfter: new Date(-maxOf(all.map(({ notAfter }) => -notAfter))).toISOString(),
  };
  return { clusterId, infraId, generation: number, validity };
}
