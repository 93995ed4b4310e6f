import type { DocumentProblem } from '../base/errors.ts';
import type { Secret } from '../base/secret.ts';
import { readTrustBundle, warnOfBundle } from '../keys/index.ts';
import type {
  InstallationSettings,
  DigestSource,
  InstallationProxy,
} from '../openshift/installation/mirrors.ts';
import { explainReference } from '../registry/index.ts';
import { decodeJson, ifFaultless } from '../shape/decode.ts';
import { LEFT_OUT, record, TEXT } from '../shape/shape.ts';
import { type ReportProblem, invalid, required } from '../shape/report.ts';
import {
  checkProxy,
  explainAuths,
  explainPullSecret,
  explainSshKeys,
  HIDDEN,
} from './rules/credentials.ts';
import { checkReleaseRegistry, explainRepository } from './rules/images.ts';

/* Owns the rules and warnings of image-based-installation-config.yaml. */

/** image-based-installation-config.yaml, complete: keys that the user left out have their defaults. */
export type InstallationConfig = InstallationSettings & {
  readonly architecture: 'amd64' | 'arm64';
  /** Ignition JSON, which may hold passwords. */
  readonly ignitionConfigOverride?: Secret;
  readonly pullSecret: Secret;
};

/**
 * The rules of image-based-installation-config.yaml, for a configuration that has its defaults.
 * Texts are those of the field errors that users of openshift-install know; values that are
 * secrets are left out. Keys that install-config.yaml has too are checked by the rules of sites.
 */
export function checkInstallationRules(
  config: InstallationConfig,
  report: ReportProblem,
): readonly DocumentProblem[] {
  return [
    ...checkPullSecret(report, config.pullSecret.reveal()),
    ...checkSshKey(report, config.sshKey),
    ...checkRequired(report, config),
    ...checkSeedImage(report, config.seedImage),
    ...checkReleaseRegistry(report, config.releaseRegistry),
    ...checkPartitionStart(report, config.extraPartitionStart),
    ...checkTrustBundle(report, config.additionalTrustBundle),
    ...checkDigestSources(report, config.imageDigestSources),
    ...checkProxy(report, config.proxy && withoutBlanks(config.proxy)),
    ...checkInstallerArguments(report, config.coreosInstallerArgs),
    ...checkArchitecture(report, config.architecture),
  ];
}

export function warnOfInstallation(
  { additionalTrustBundle, installationDisk, ignitionConfigOverride }: InstallationConfig,
  report: ReportProblem,
): readonly DocumentProblem[] {
  return [
    ...warnOfBundle(readTrustBundle(additionalTrustBundle)).map((why) =>
      report('additionalTrustBundle', why),
    ),
    ...warnOfDisk(report, installationDisk),
    ...warnOfOverride(report, ignitionConfigOverride?.reveal()),
  ];
}

function warnOfDisk(report: ReportProblem, disk: string): readonly DocumentProblem[] {
  if (!/^\/dev\/sd[a-z]+$/.test(disk)) return [];
  const problem =
    `${disk} is named in the order in which disks are found: ` +
    'it may be another disk at the next boot';
  const hint = 'name it by /dev/disk/by-id/wwn-0x... or another path in /dev/disk/by-id';
  return [report('installationDisk', problem, { hint })];
}

const VERSIONED = record({ ignition: record({ version: TEXT }, LEFT_OUT) }, LEFT_OUT);

/** A live system of 4.22 reads every version; its installer takes the newest of them alone. */
function warnOfOverride(report: ReportProblem, text = ''): readonly DocumentProblem[] {
  const version = ifFaultless(decodeJson(VERSIONED, text))?.ignition.version;
  if (version !== '3.0.0' && version !== '3.1.0') return [];
  const problem = `openshift-install 4.22 refuses Ignition ${version}: it takes 3.2.0`;
  const hint = 'write version 3.2.0, which reads older configurations unchanged';
  return [report('ignitionConfigOverride', problem, { hint, hideValue: true })];
}

function checkPullSecret(report: ReportProblem, text: string): readonly DocumentProblem[] {
  const faults =
    text === ''
      ? [required('you must specify a pullSecret')]
      : [...explainPullSecret(text), ...explainAuths(text).map((why) => `${HIDDEN}: ${why}`)];
  return faults.map((problem) => report('pullSecret', problem));
}

function checkSshKey(report: ReportProblem, text: string): readonly DocumentProblem[] {
  const why = text === '' ? undefined : explainSshKeys(text, false);
  // The value may be a private key.
  return why === undefined ? [] : [report('sshKey', `${HIDDEN}: ${why}`, { hideValue: true })];
}

function checkRequired(
  report: ReportProblem,
  config: InstallationConfig,
): readonly DocumentProblem[] {
  const articles = { seedImage: 'a', seedVersion: 'a', installationDisk: 'an' } as const;
  return (['seedImage', 'seedVersion', 'installationDisk'] as const)
    .filter((name) => config[name] === '')
    .map((name) => report(name, required(`you must specify ${articles[name]} ${name}`)));
}

/** openshift-install takes any text; the live system asks for a wrong one again and again. */
function checkSeedImage(report: ReportProblem, text: string): readonly DocumentProblem[] {
  const why = text === '' ? undefined : explainReference(text);
  return why === undefined ? [] : [report('seedImage', invalid(text, why))];
}

function checkPartitionStart(report: ReportProblem, text: string): readonly DocumentProblem[] {
  if (text === '0' || /^[+-]?\d+[KMGTP]$/.test(text)) return [];
  const problem =
    text === ''
      ? required('partition start sector cannot be empty')
      : invalid(text, "partition start must be '0' or match pattern [+-]?<number>[KMGTP]");
  return [report('extraPartitionStart', problem, { shownPath: 'ExtraPartitionStart' })];
}

function checkTrustBundle(report: ReportProblem, text: string): readonly DocumentProblem[] {
  const { problem } = readTrustBundle(text);
  return problem === undefined ? [] : [report('additionalTrustBundle', `${HIDDEN}: ${problem}`)];
}

/** The text of a source's policy is not checked here: only one word of it has a meaning. */
function checkDigestSources(
  report: ReportProblem,
  sources: readonly DigestSource[],
): readonly DocumentProblem[] {
  return sources.flatMap(({ source, mirrors }, index) =>
    [
      [`imageDigestSources[${index}].source`, source] as const,
      ...mirrors.map(
        (mirror, at) => [`imageDigestSources[${index}].mirrors[${at}]`, mirror] as const,
      ),
    ].flatMap(([path, text]) => {
      const why = explainRepository(text);
      return why === undefined ? [] : [report(path, invalid(text, why))];
    }),
  );
}

/** Blanks around the elements of noProxy have no meaning here; install-config.yaml may not have them. */
function withoutBlanks({ noProxy, ...urls }: InstallationProxy): InstallationProxy {
  if (noProxy === undefined) return urls;
  const elements = noProxy.split(',').map((element) => element.trim());
  return { ...urls, noProxy: elements.join(',') };
}

function checkInstallerArguments(
  report: ReportProblem,
  list: readonly string[],
): readonly DocumentProblem[] {
  return list.flatMap((text, index) => {
    const why = explainArgument(text);
    if (why === undefined) return [];
    const shownPath = 'CoreosInstallerArgs';
    return [report(`coreosInstallerArgs[${index}]`, required(why), { shownPath })];
  });
}

const FLAGS = ['--append-karg', '--delete-karg', '--save-partlabel', '--save-partindex'];

/** Includes all ASCII characters from + to =. */
const ARGUMENT = /^[A-Za-z0-9@!#$%*()_";':{}[\]+-=]+$/;

function explainArgument(text: string): string | undefined {
  if (!text.startsWith('-')) {
    if (ARGUMENT.test(text)) return undefined;
    return `found unexpected chars in value ${text} for installer`;
  }
  if (FLAGS.includes(text)) return undefined;
  return (
    `found unexpected flag ${text} for coreosInstallerArgs - ` +
    `allowed flags are [${FLAGS.join(' ')}]`
  );
}

function checkArchitecture(report: ReportProblem, text: string): readonly DocumentProblem[] {
  if (text === 'amd64' || text === 'arm64') return [];
  return [report('architecture', invalid(text, 'architecture must be one of [amd64 arm64]'))];
}
