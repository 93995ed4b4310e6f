import { statSync } from 'node:fs';
import { dirname } from 'node:path';
import { ConfigError } from '../../base/errors.ts';
import { unlessAbsent } from '../../base/disk/files.ts';
import { readOwnFile } from '../../base/disk/open-file.ts';
import type { IdentityState, StateSite } from '../identity/identity-state.ts';
import { readRetained } from '../identity/retained/read-retained.ts';
import type { SiteIdentity } from '../identity/site-identity.ts';
import { readRetainedIso } from '../read-config-iso.ts';
import type { SitePlaces } from './site-places.ts';

/** Ids that an earlier run wrote to its list of sites. */
export type ListedIds = { readonly clusterId: string; readonly infraId: string };

type MadeBefore = {
  readonly places: SitePlaces;
  readonly site: StateSite;
  readonly listed?: ListedIds | undefined;
};

/** Which of the files that have an identity are there. */
const listMade = ({ iso, kubeconfig, password }: SitePlaces): readonly string[] =>
  [iso, kubeconfig, password].filter((path) => unlessAbsent(() => statSync(path))?.isFile());

/**
 * The identity that is on the ISO of a site and in its kubeconfig and password, when all three are
 * there and agree with each other and with what the list says of them.
 *
 * @throws DiskError `file.foreign`; ConfigError `config-iso.identity-lost`, those of `readRetained`; those of reading an ISO
 */
export async function takeBack({ places, site, listed }: MadeBefore): Promise<IdentityState> {
  const { iso, kubeconfig, password } = places;
  const made = listMade(places);
  const missing = [iso, kubeconfig, password].filter((path) => !made.includes(path));
  if (missing.length > 0) throw lost(`${missing.join(', ')} is not there`);
  // Who made these files has the keys of the cluster.
  for (const path of made) await readOwnFile(path);
  const { whole, clusterName, baseDomain } = await readRetained({
    iso,
    kubeconfig,
    readIso: readRetainedIso,
  });
  if (!whole || clusterName === undefined || baseDomain === undefined) {
    throw lost(`${iso} and ${dirname(kubeconfig)} do not have all of it`);
  }
  refuseOther(whole, listed);
  const { clusterId, infraId } = site;
  return {
    identity: whole,
    site: {
      clusterName,
      baseDomain,
      ...(clusterId === whole.clusterId && { clusterId }),
      ...(infraId === whole.infraId && { infraId }),
    },
  };
}

function refuseOther({ clusterId, infraId }: SiteIdentity, listed: ListedIds | undefined): void {
  if (!listed || (listed.clusterId === clusterId && listed.infraId === infraId)) return;
  throw new ConfigError('config-iso.identity-lost', 'sites.json has other ids than the ISO', {
    expected: `${listed.clusterId} ${listed.infraId}`,
    found: `${clusterId} ${infraId}`,
  });
}

const lost = (message: string): ConfigError => new ConfigError('config-iso.identity-lost', message);
