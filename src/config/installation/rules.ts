import { checkSshKey } from '../check-secrets.ts';
import type { ConfigDocument } from '../document.ts';
import type { ConfigProblem } from '../problem.ts';
import type { InstallationConfig } from './installation-config.ts';
import { checkPullSecret, checkTrustBundle } from './check-pem.ts';
import { checkProxy } from './check-proxy.ts';
import { checkRepository } from './check-repository.ts';

/** Where a finding is, and what it is called: a few have names of their own. */
export type Finding = {
  /** Path of the value in the document. */
  readonly at: string;
  /** The path to print, where it is another. */
  readonly shownAs?: string;
  readonly problem: string;
};

const FLAGS = ['--append-karg', '--delete-karg', '--save-partlabel', '--save-partindex'];

/** Also what ASCII has from + to =. */
const ARGUMENT = /^[A-Za-z0-9@!#$%*()_";':{}[\]+-=]+$/;

/**
 * The rules of image-based-installation-config.yaml in their order, on a configuration that has its
 * defaults. Texts are those of the field errors that users of openshift-install know; values that are
 * secrets are left out.
 */
export function checkInstallationRules(
  config: InstallationConfig,
  document: ConfigDocument,
): readonly ConfigProblem[] {
  const findings = [
    ...checkPullSecret(config.pullSecret.reveal()),
    ...checkKey(config.sshKey),
    ...checkRequired(config),
    ...checkPartitionStart(config.extraPartitionStart),
    ...checkTrustBundle(config.additionalTrustBundle),
    ...checkDigestSources(config),
    ...(config.proxy ? checkProxy(config.proxy) : []),
    ...checkInstallerArguments(config.coreosInstallerArgs),
    ...checkArchitecture(config.architecture),
  ];
  return findings.map(({ at, shownAs = at, problem }) =>
    document.report.atOffset(document.offsetOf(at), { path: shownAs, problem }),
  );
}

/** As Go's %q, for what is printable. */
const quote = (value: string): string => JSON.stringify(value);

/** Of several lines the first that is a key counts. */
function checkKey(text: string): Finding[] {
  if (text === '' || text.split(/\r?\n/).some((line) => checkSshKey(line) === undefined)) return [];
  // A private key may stand there.
  return [{ at: 'sshKey', problem: 'Invalid value: "[redacted]": ssh: no key found' }];
}

function checkRequired(config: InstallationConfig): Finding[] {
  const articles = { seedImage: 'a', seedVersion: 'a', installationDisk: 'an' } as const;
  return (['seedImage', 'seedVersion', 'installationDisk'] as const)
    .filter((name) => config[name] === '')
    .map((at) => ({ at, problem: `Required value: you must specify ${articles[at]} ${at}` }));
}

function checkPartitionStart(text: string): Finding[] {
  const place = { at: 'extraPartitionStart', shownAs: 'ExtraPartitionStart' };
  if (text === '') {
    return [{ ...place, problem: 'Required value: partition start sector cannot be empty' }];
  }
  if (text === '0' || /^[+-]?\d+[KMGTP]$/.test(text)) return [];
  const rule = "partition start must be '0' or match pattern [+-]?<number>[KMGTP]";
  return [{ ...place, problem: `Invalid value: ${quote(text)}: ${rule}` }];
}

function checkDigestSources({ imageDigestSources }: InstallationConfig): Finding[] {
  return imageDigestSources.flatMap(({ source, mirrors }, index) => {
    const at = `imageDigestSources[${index}]`;
    return [
      ...checkPlace(`${at}.source`, source),
      ...mirrors.flatMap((mirror, number) => checkPlace(`${at}.mirrors[${number}]`, mirror)),
    ];
  });
}

function checkPlace(at: string, text: string): Finding[] {
  const problem = checkRepository(text);
  return problem === undefined
    ? []
    : [{ at, problem: `Invalid value: ${quote(text)}: ${problem}` }];
}

function checkInstallerArguments(list: readonly string[]): Finding[] {
  return list.flatMap((text, index) => {
    const place = { at: `coreosInstallerArgs[${index}]`, shownAs: 'CoreosInstallerArgs' };
    if (text.startsWith('-')) {
      if (FLAGS.includes(text)) return [];
      const problem =
        `Required value: found unexpected flag ${text} for coreosInstallerArgs - ` +
        `allowed flags are [${FLAGS.join(' ')}]`;
      return [{ ...place, problem }];
    }
    if (ARGUMENT.test(text)) return [];
    const problem = `Required value: found unexpected chars in value ${text} for installer`;
    return [{ ...place, problem }];
  });
}

function checkArchitecture(text: string): Finding[] {
  if (text === 'amd64' || text === 'arm64') return [];
  const problem = `Invalid value: ${quote(text)}: architecture must be one of [amd64 arm64]`;
  return [{ at: 'architecture', problem }];
}
