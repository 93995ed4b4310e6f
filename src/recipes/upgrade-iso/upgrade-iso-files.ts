import { dirname, join } from 'node:path';
import { ConfigError } from '../../base/errors.ts';
import { describeCatalogs } from '../../openshift/node/describe-cluster.ts';
import { renderUpgradeHostMachineConfigs } from '../../openshift/node/upgrade/upgrade-host.ts';
import { renderUpgradeMachineConfig } from '../../openshift/node/upgrade/upgrade-machine-config.ts';
import { renderUpgradeResources } from '../../openshift/node/upgrade/upgrade-resources.ts';
import { digestOfRelease } from '../../openshift/release/release-payload.ts';
import { signaturesOf } from '../../openshift/signature/release-signature.ts';
import { sealSideFile } from './side-files.ts';
import type {
  PreparedUpgradeIso,
  SideFile,
  SideFiles,
  UpgradeIsoRequest,
} from './upgrade-iso-request.ts';

type Carried = Pick<PreparedUpgradeIso, 'release' | 'path' | 'plan' | 'catalogs' | 'releases'>;

/**
 * What a cluster is given: `upgrade-VERSION.yaml` for `oc apply`, and where they are wanted
 * `upgrade-machine-config-VERSION.yaml` and `upgrade-hosts.yaml`, all beside the ISO.
 *
 * @throws ConfigError `upgrade.no-previous`, `catalog.bad-name`, `catalog.same-name`
 */
export function renderSideFiles(request: UpgradeIsoRequest, carried: Carried): SideFiles {
  const { output, machineConfig, prepareHosts } = request;
  const { version, arch } = carried.release;
  const resources = renderResources(request, carried);
  const beside = (name: string, text: string): SideFile => ({
    path: join(dirname(output), name),
    text: sealSideFile(text),
  });
  return {
    resources: beside(`upgrade-${version}.yaml`, resources),
    ...(machineConfig && {
      machineConfig: beside(
        `upgrade-machine-config-${version}.yaml`,
        renderUpgradeMachineConfig({ hops: listHops(carried), arch, resources }),
      ),
    }),
    ...(prepareHosts && {
      hosts: beside('upgrade-hosts.yaml', renderUpgradeHostMachineConfigs()),
    }),
  };
}

const renderResources = (
  { config }: UpgradeIsoRequest,
  { release, plan, catalogs, releases }: Carried,
): string =>
  renderUpgradeResources({
    version: release.version,
    releases: releases.map((release) => ({
      version: release.version,
      digest: digestOfRelease(release),
      signatures: signaturesOf(release).map((base64) => Buffer.from(base64, 'base64')),
    })),
    mirrors: plan.mirrors,
    catalogs: describeCatalogs(catalogs),
    useDefaultSourceNames: config.useDefaultSourceNames,
  });

function listHops({ release, path, releases }: Carried) {
  return path.hops.map(({ version, image }, index) => ({
    version,
    releaseImage: image,
    fromVersions: listBefore({ release, path }, index),
    isSigned: releases[index]?.signature?.status === 'verified',
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
