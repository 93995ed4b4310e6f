import { dirname } from 'node:path';
import { formatCanonicalJson, type Json } from '../../../base/canonical-json.ts';
import { digestOf, type Digest } from '../../../base/digest.ts';
import { readFileIfPresent } from '../../../base/files.ts';
import type { Site } from '../../../config/sites/site.ts';
import { encodeSmallIso } from '../../../iso/small-iso.ts';
import { readValidity } from '../../../openshift/image-based/identity/certificates/certificate-validity.ts';
import { CONFIG_VOLUME_ID, planConfigTree } from '../../../openshift/image-based/config-tree.ts';
import {
  formatState,
  isSameSite,
  parseState,
  type StateSite,
} from '../../../openshift/image-based/identity/identity-state.ts';
import { renderKubeconfig } from '../../../openshift/image-based/identity/kubeconfig.ts';
import { makeIdentity } from '../../../openshift/image-based/identity/make-identity.ts';
import type { RetainedIdentity } from '../../../openshift/image-based/identity/retained/retain-identity.ts';
import type { Keys } from '../../../openshift/image-based/identity/keys/rsa-keys.ts';
import type { SiteIdentity } from '../../../openshift/image-based/identity/site-identity.ts';
import { renderSeedReconfiguration } from '../../../openshift/image-based/seed-reconfiguration.ts';
import type { SitePlaces } from './site-places.ts';
import { formatRecord, type MadeIso, type Wanted } from './site-record.ts';
import type { NewFiles } from './site-writer.ts';

export type ComposeSite = {
  readonly places: SitePlaces;
  readonly wanted: Wanted;
  readonly keys: Keys;
  /** Seconds since 1970, for an identity that is made now. */
  readonly epoch: number;
  readonly retained?: RetainedIdentity;
  /** Ends the wait for keys. */
  readonly signal?: AbortSignal;
};

/** The state appears first: whatever is killed, the same keys are used again. */
export type ComposedSite = NewFiles & {
  readonly made: MadeIso;
  /** Members of a manifest that was kept in which the inputs differ. */
  readonly overridden: readonly string[];
};

/**
 * The ISO and the files beside it, not written yet. Same inputs and same state, same bytes.
 *
 * @throws ConfigError `layout.name-too-long`, those of `makeIdentity`
 */
export async function composeSite(site: Site, options: ComposeSite): Promise<ComposedSite> {
  const { places, retained } = options;
  const before = await readFileIfPresent(places.state);
  const identity = await provideIdentity(site, { ...options, before });
  const state = formatState(identity, stateSiteOf(site));
  const kubeconfig = renderKubeconfig(site.install, identity);
  const tree = planConfigTree(site, identity, retained);
  const iso = encodeSmallIso({
    ...{ volumeId: CONFIG_VOLUME_ID, epoch: identity.madeAt },
    ...tree,
  });
  const { text: password } = identity.password;
  const outputs = {
    ...{ state: digestOf(state), kubeconfig: digestOf(kubeconfig) },
    ...{ password: digestOf(password), iso: digestOf(iso) },
  };
  const overridden =
    retained?.manifest === undefined
      ? []
      : listOverridden(renderSeedReconfiguration(site, identity), retained.manifest);
  const made = describeMade(identity, { digest: outputs.iso, size: iso.length });
  return {
    ...{ shownAs: places.iso, directory: dirname(places.kubeconfig) },
    files: [
      // Keys that were drawn once are never lost: who changed a name by mistake wants them back.
      ...(before && before.toString('utf8') !== state
        ? [{ path: places.stateBefore, data: before }]
        : []),
      { path: places.state, data: state },
      { path: places.kubeconfig, data: kubeconfig },
      { path: places.password, data: password },
      { path: places.iso, data: iso },
    ],
    record: { path: places.record, data: formatRecord({ ...options.wanted, outputs, made }) },
    made,
    overridden,
  };
}

/** The identity is kept as well, and another producer may write its keys in another way. */
const OF_IDENTITY = ['KubeconfigCryptoRetention', 'kubeadmin_password_hash'];

function listOverridden(rendered: string, kept: string): readonly string[] {
  const [ours, theirs] = [rendered, kept].map(
    (text) => JSON.parse(text) as Record<string, unknown>,
  );
  if (!ours || !theirs) return [];
  const keys = [...new Set([...Object.keys(ours), ...Object.keys(theirs)])];
  return keys.filter(
    (key) =>
      !OF_IDENTITY.includes(key) &&
      formatCanonicalJson([ours[key] as Json]) !== formatCanonicalJson([theirs[key] as Json]),
  );
}

const stateSiteOf = ({ install, imageBased }: Site): StateSite => ({
  ...{ clusterName: install.clusterName, baseDomain: install.baseDomain },
  ...(imageBased.clusterId !== undefined && { clusterId: imageBased.clusterId }),
  ...(imageBased.infraId !== undefined && { infraId: imageBased.infraId }),
});

async function provideIdentity(
  site: Site,
  { before, ...options }: ComposeSite & { readonly before: Buffer | undefined },
): Promise<SiteIdentity> {
  const { keys, epoch, retained, signal } = options;
  const wanted = stateSiteOf(site);
  if (options.wanted.rotation === undefined) {
    const state = before && parseState(before.toString('utf8'));
    const isKept = state && isSameSite(state.site, wanted) && holds(state.identity, retained);
    if (isKept) return state.identity;
  }
  return makeIdentity(wanted, {
    ...{ keys, epoch },
    ...(signal && { signal }),
    ...(retained && { retained }),
  });
}

/** Whether all that an earlier producer left is in the identity already. */
function holds(identity: SiteIdentity, retained: RetainedIdentity | undefined): boolean {
  if (!retained) return true;
  const { signers, signerKeys, clusterId, infraId, password, ingressCommonName } = retained;
  return (
    Object.entries(signers).every(
      ([name, { certificate }]) =>
        identity.signers[name as keyof typeof signers].certificate === certificate,
    ) &&
    Object.entries(signerKeys).every(
      ([name, key]) => identity.signers[name as keyof typeof signers].privateKey === key,
    ) &&
    isUnsetOr(clusterId, identity.clusterId) &&
    isUnsetOr(infraId, identity.infraId) &&
    isUnsetOr(password?.bcrypt, identity.password.bcrypt) &&
    isUnsetOr(ingressCommonName, identity.signers.ingress.commonName)
  );
}

const isUnsetOr = (wanted: string | undefined, found: string): boolean =>
  wanted === undefined || wanted === found;

function describeMade(
  identity: SiteIdentity,
  iso: { readonly digest: Digest; readonly size: number },
): MadeIso {
  const { clusterId, infraId, signers, adminClient } = identity;
  const all = [...Object.values(signers), adminClient].map(({ certificate }) =>
    readValidity(certificate),
  );
  const validity = {
    notBefore: new Date(Math.max(...all.map(({ notBefore }) => notBefore))).toISOString(),
    notAfter: new Date(Math.min(...all.map(({ notAfter }) => notAfter))).toISOString(),
  };
  return { ...iso, clusterId, infraId, validity };
}
