import { dirname, join } from 'node:path';
import { ConfigError } from '../../base/errors.ts';
import { describeCatalogs } from '../../openshift/node/describe-cluster.ts';
import { renderUpgradeMachineConfig } from '../../openshift/node/upgrade/upgrade-machine-config.ts';
import { renderUpgradeResources } from '../../openshift/node/upgrade/upgrade-resources.ts';
import { digestOfRelease, type Release } from '../../openshift/release/release-payload.ts';
import { sealSideFile } from './side-files.ts';
import type { PreparedUpgradeIso, SideFile, UpgradeIsoRequest } from './upgrade-iso-request.ts';

export type SignedRelease = {
  readonly release: Release;
  /** Base64. */
  readonly signatures: readonly string[];
};

type Carried = Pick<PreparedUpgradeIso, 'release' | 'path' | 'plan' | 'catalogs'> & {
  /** In the order of the path. */
  readonly signed: readonly SignedRelease[];
};

/**
 * What a cluster is given: `upgrade-VERSION.yaml` for `oc apply`, and where it is wanted
 * `upgrade-machine-config-VERSION.yaml`, both beside the ISO.
 *
 * @throws ConfigError `upgrade.no-previous`, `catalog.bad-name`, `catalog.same-name`
 */
export function renderSideFiles(
  { output, config, machineConfig }: UpgradeIsoRequest,
  carried: Carried,
): readonly [SideFile, ...SideFile[]] {
  const { release, plan, catalogs, signed } = carried;
  const { version, arch } = release;
  const resources = renderUpgradeResources({
    version,
    releases: signed.map(({ release, signatures }) => ({
      version: release.version,
      digest: digestOfRelease(release),
      signatures: signatures.map((base64) => Buffer.from(base64, 'base64')),
    })),
    mirrors: plan.mirrors,
    catalogs: describeCatalogs(catalogs),
    useDefaultSourceNames: config.useDefaultSourceNames,
  });
  const beside = (name: string, text: string): SideFile => ({
    path: join(dirname(output), name),
    text: sealSideFile(text),
  });
  const first = beside(`upgrade-${version}.yaml`, resources);
  if (!machineConfig) return [first];
  const text = renderUpgradeMachineConfig({ hops: listHops(carried), arch, resources });
  return [first, beside(`upgrade-machine-config-${version}.yaml`, text)];
}

function listHops({ release, path, signed }: Carried) {
  return path.hops.map(({ version, image }, index) => ({
    ...{ version, releaseImage: image, fromVersions: listBefore({ release, path }, index) },
    isSigned: signed[index]?.signatures.length !== 0,
  }));
}

/** The versions that may be updated by a hop: the one before it on the path, else all the payload names. */
function listBefore(
  { release, path }: Pick<Carried, 'release' | 'path'>,
  index: number,
): readonly string[] {
  const before = index === 0 ? path.from : path.hops[index - 1]?.version;
  if (before !== undefined) return [before];
  const { previous } = release.metadata;
  if (previous.length > 0) return previous;
  throw new ConfigError(
    'upgrade.no-previous',
    `release ${release.version} does not say which releases may be updated to it`,
    {
      hint: 'name the version of the cluster with --from, or leave --machine-config out',
    },
  );
}
