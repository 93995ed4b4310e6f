import { dirname } from 'node:path';
import { digestOf, type Digest } from '../../base/digest.ts';
import { maxOf } from '../../base/lists.ts';
import type { Site } from '../site.ts';
import { encodeSmallIso } from '../../iso/small-iso.ts';
import { readValidity } from '../identity/certificates/certificate-validity.ts';
import { CONFIG_VOLUME_ID, planConfigTree } from './config-tree.ts';
import { formatState } from '../identity/identity-state.ts';
import { renderKubeconfig } from '../identity/kubeconfig.ts';
import type { RetainedIdentity } from '../identity/retained/retain-identity.ts';
import type { ProvidedIdentity } from '../state/provide-identity.ts';
import type { SitePlaces } from '../state/site-places.ts';
import { formatRecord, hasOutputs, type MadeIso, type Wanted } from '../state/site-record.ts';
import type { NewFiles } from '../state/site-writer.ts';

export type ComposeSite = {
  readonly places: SitePlaces;
  readonly wanted: Wanted;
  readonly provided: ProvidedIdentity;
  readonly retained?: RetainedIdentity | undefined;
};

/** The state appears first: whatever is killed, the same keys are used again. */
export type ComposedSite = NewFiles & {
  readonly made: MadeIso;
  /** Whether the same files are there already, byte by byte. */
  readonly isThere: boolean;
};

/**
 * The ISO and the files beside it, not written yet. Same inputs and same state, same bytes.
 *
 * @throws ConfigError `layout.name-too-long`
 */
export function composeSite(site: Site, options: ComposeSite): ComposedSite {
  const { places, provided, retained } = options;
  const { identity } = provided.state;
  const kubeconfig = renderKubeconfig(site.install, identity);
  const tree = planConfigTree(site, identity, retained);
  const iso = encodeSmallIso({
    volumeId: CONFIG_VOLUME_ID,
    epoch: identity.madeAt,
    ...tree,
  });
  const { text: password } = identity.password;
  const outputs = {
    state: digestOf(formatState(provided.state)),
    kubeconfig: digestOf(kubeconfig),
    password: digestOf(password),
    iso: digestOf(iso),
  };
  const made = describeMade(provided, { digest: outputs.iso, size: iso.length });
  const isThere = hasOutputs(places, outputs);
  const files = [
    { path: places.kubeconfig, data: kubeconfig },
    { path: places.password, data: password },
    { path: places.iso, data: iso },
  ];
  return {
    shownAs: places.iso,
    directories: listDirectories(places),
    state: provided.files,
    files: isThere ? [] : files,
    record: { path: places.record, data: formatRecord({ ...options.wanted, outputs, made }) },
    made,
    isThere,
  };
}

/** Between the folder of all sites and the files of one. */
function listDirectories({ iso, kubeconfig }: SitePlaces): readonly string[] {
  const listed: string[] = [];
  for (let path = dirname(kubeconfig); path !== dirname(iso); path = dirname(path)) {
    listed.unshift(path);
  }
  return listed;
}

function describeMade(
  { number, state: { identity } }: ProvidedIdentity,
  iso: { readonly digest: Digest; readonly size: number },
): MadeIso {
  const { clusterId, infraId, signers, adminClient } = identity;
  const all = [...Object.values(signers), adminClient].map(({ certificate }) =>
    readValidity(certificate),
  );
  const validity = {
    notBefore: new Date(maxOf(all.map(({ notBefore }) => notBefore))).toISOString(),
    notAfter: new Date(-maxOf(all.map(({ notAfter }) => -notAfter))).toISOString(),
  };
  return { ...iso, clusterId, infraId, generation: number, validity };
}
