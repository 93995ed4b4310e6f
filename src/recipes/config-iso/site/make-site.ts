import { mkdir, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { sweepDirectory } from '../../../base/aside.ts';
import { digestOf, type Digest } from '../../../base/digest.ts';
import { ConfigError } from '../../../base/errors.ts';
import { isErrno } from '../../../base/errno.ts';
import { readFileIfPresent, syncDirectory } from '../../../base/files.ts';
import type { Site } from '../../../config/sites/site.ts';
import { explainOutputError } from '../../../iso/pour/output-file.ts';
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
import type { KeySource } from '../../../openshift/image-based/identity/keys/rsa-keys.ts';
import type { SiteIdentity } from '../../../openshift/image-based/identity/site-identity.ts';
import type { SitePlaces } from './site-places.ts';
import { writeRecord, type MadeIso, type Wanted } from './site-record.ts';
import { writeFiles } from './write-files.ts';

export type MakeSite = {
  readonly places: SitePlaces;
  readonly wanted: Wanted;
  readonly keys: KeySource;
  /** Seconds since 1970, for an identity that is made now. */
  readonly epoch: number;
  readonly retained?: RetainedIdentity;
  readonly signal: AbortSignal;
};

/**
 * Makes the ISO and the files beside it: the state first, so that whatever is killed, the same keys
 * are used again; the record last. Same inputs and same state, same bytes.
 *
 * @throws ConfigError `config-iso.in-the-way`, `layout.name-too-long`; DiskError
 */
export async function makeSite(site: Site, options: MakeSite): Promise<MadeIso> {
  const { places, retained } = options;
  try {
    const identity = await provideIdentity(site, options);
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
    const made = describeMade(identity, { digest: outputs.iso, size: iso.length });
    await rm(places.record, { force: true });
    await prepareDirectory(dirname(places.kubeconfig));
    await writeFiles([{ path: places.state, data: state }]);
    await writeFiles([
      { path: places.kubeconfig, data: kubeconfig },
      { path: places.password, data: password },
      { path: places.iso, data: iso },
    ]);
    await syncDirectory(dirname(places.kubeconfig));
    await writeRecord(places.record, { ...options.wanted, outputs, made });
    return made;
  } catch (error) {
    throw explainObstacle(error, places);
  }
}

async function prepareDirectory(path: string): Promise<void> {
  const created = await mkdir(path, { recursive: true });
  if (created === undefined) await sweepDirectory(path, { alone: true });
}

const stateSiteOf = ({ install, imageBased }: Site): StateSite => ({
  ...{ clusterName: install.clusterName, baseDomain: install.baseDomain },
  ...(imageBased.clusterId !== undefined && { clusterId: imageBased.clusterId }),
  ...(imageBased.infraId !== undefined && { infraId: imageBased.infraId }),
});

async function provideIdentity(site: Site, options: MakeSite): Promise<SiteIdentity> {
  const { places, keys, epoch, retained, signal } = options;
  const wanted = stateSiteOf(site);
  if (options.wanted.rotation === undefined) {
    const text = await readFileIfPresent(places.state);
    const state = text && parseState(text.toString('utf8'));
    const isKept = state && isSameSite(state.site, wanted) && holds(state.identity, retained);
    if (isKept) return state.identity;
  }
  return makeIdentity(wanted, { keys, epoch, signal, ...(retained && { retained }) });
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

/** Something else of the same name concerns this site only. */
function explainObstacle(error: unknown, { iso }: SitePlaces): unknown {
  if (!isErrno(error, 'EEXIST', 'ENOTDIR', 'EISDIR')) return explainOutputError(error, iso);
  return new ConfigError('config-iso.in-the-way', `something else is in the way of ${iso}`, {
    cause: error,
    hint: 'choose another folder with --out, or move it away',
  });
}
