import { SealiftError, UsageError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { parseResolved } from '../../ignition/index.ts';
import type { IsoImage } from '../../iso/index.ts';
import { isForAgents } from '../../openshift/agent/configure.ts';
import type { CustomValues, InstallerValues } from '../../openshift/agent/values.ts';
import { findChangedPart, hasInstallation } from '../../openshift/installation/ignition.ts';
import { readIndex } from '../media-index.ts';
import { readProof } from '../proof.ts';
import { isForInstaller } from './installer.ts';

/* Refuses values that have no place on an ISO, each by its name and with the reason. */

/** The ISO that gets values, as far as its own config decides what it takes. */
export type Taking = {
  /** JSON text of its config without values of a site. */
  readonly own: string | undefined;
  /** True if sealift made the ISO, so that a config without values is one that installs. */
  readonly isOurs: boolean;
};

const INSTALLER_NAMES: Readonly<Record<keyof InstallerValues, string>> = {
  liveIgnition: 'a config of the live system',
  ignitionCa: 'an authority of Ignition',
  destDevice: 'a destination device',
  destIgnition: 'a config of the installed system',
  destConsole: 'a console of the installed system',
  destKargsAppend: 'kernel arguments of the installed system',
  destKargsDelete: 'deleted kernel arguments of the installed system',
  preInstall: 'a pre-install script',
  postInstall: 'a post-install script',
  installerConfig: 'parameters of coreos-installer',
};

const NAMES: Readonly<Record<Exclude<keyof CustomValues, 'installer'>, string>> = {
  sshKeys: 'SSH keys',
  pullSecret: 'a pull secret',
  rendezvousIp: 'a rendezvous IP',
  hosts: 'networks of hosts',
  proxy: 'a proxy',
  ntpSources: 'time servers',
  exclusiveNtpSources: 'exclusive time servers',
  trustBundle: 'a trust bundle',
  hostnames: 'host names',
  ignitionOverride: 'an Ignition override',
  kargs: 'kernel arguments',
  keyfiles: 'network profiles',
  manifests: 'manifests',
  releaseImage: 'a ClusterImageSet',
  infraEnv: 'an InfraEnv',
  installOverrides: 'overrides of install-config',
};

const nameValues = ({ installer = {}, ...values }: CustomValues): readonly string[] => [
  ...Object.keys(withoutUndefined(values)).map((key) => NAMES[key as keyof typeof NAMES]),
  ...nameInstallerValues(installer),
];

const nameInstallerValues = (values: InstallerValues): readonly string[] =>
  Object.keys(withoutUndefined(values)).map((key) => INSTALLER_NAMES[key as keyof InstallerValues]);

/** Parameters of coreos-installer need an ISO that runs it; some ISOs install with their own pull secret. */
export function refuseUnfit(values: CustomValues, taking: Taking): void {
  const installs = describeInstaller(taking);
  if (installs === undefined) return;
  const { installer = {}, pullSecret } = values;
  if (isForInstaller(installer)) {
    const unfit = withoutUndefined({
      ...installer,
      liveIgnition: undefined,
      ignitionCa: undefined,
    });
    const names = nameInstallerValues(unfit).join(' and ');
    throw new UsageError(
      'customize.own-installer',
      `this ISO has no use for ${names}: it ${installs}, and does not run "coreos-installer install" with parameters`,
      { hint: 'leave out --dest-*, --pre-install, --post-install and --installer-config' },
    );
  }
  if (pullSecret === undefined || installs !== SEED) return;
  throw new UsageError(
    'customize.own-secret',
    'this ISO has no use for a pull secret: it installs a seed image with the one that it was built with',
    { hint: 'build it again with the other pull secret' },
  );
}

const SEED = 'installs a seed image by itself';

/** The installation that an ISO begins when it boots; undefined for a live system alone. */
function describeInstaller({ own, isOurs }: Taking): string | undefined {
  if (own === undefined) return undefined;
  const config = parseResolved(own, 'the Ignition config of the ISO');
  if (hasInstallation(config)) return SEED;
  return isOurs || isForAgents(config) ? 'installs a cluster by itself' : undefined;
}

/** Refuses values that would change the parts of a config that install a seed image. */
export function requireInstallationKept(own: string | undefined, now: string | undefined): void {
  if (own === undefined || now === undefined) return;
  const [before, after] = [own, now].map((text) => parseResolved(text, 'the Ignition config'));
  const changed =
    before && after && hasInstallation(before) ? findChangedPart(before, after) : undefined;
  if (changed === undefined) return;
  throw new UsageError(
    'customize.installation',
    `the values change ${changed}, without which this ISO does not install`,
    { hint: 'leave it out of the Ignition configs that are given' },
  );
}

/** Runs a step that needs the areas of a live ISO. A product that does not boot is refused by its name. */
export async function withAreas<Result>(
  iso: IsoImage,
  values: CustomValues,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof SealiftError) || !LACKING.includes(error.code)) throw error;
    const what = await nameProduct(iso);
    if (what === undefined) throw error;
    throw new UsageError(
      'customize.no-areas',
      `${iso.path} cannot take ${nameValues(values).join(' and ')}: it is ${what}, which does not boot`,
      { cause: error, hint: 'customise the live ISO or the installation ISO' },
    );
  }
}

const LACKING: readonly string[] = ['iso.no-embed-area', 'customize.no-kargs'];

const PRODUCTS: Readonly<Record<string, string>> = {
  'upgrade-iso': 'an upgrade ISO',
  'config-iso': 'a configuration ISO',
};

async function nameProduct(iso: IsoImage): Promise<string | undefined> {
  const index = await readIndex(iso);
  const proof = index ? undefined : await readProof({ read: iso.readBytes, size: iso.fileSize });
  return PRODUCTS[index?.product ?? proof?.product ?? ''];
}
