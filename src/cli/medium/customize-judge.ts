import { UsageError } from '../../base/errors.ts';
import { readUserInfo } from '../../base/http/address.ts';
import type { Redaction } from '../../base/text/redact.ts';
import { decodeUserText } from '../../base/text/utf8.ts';
import { joinProblem } from '../../base/text/words.ts';
import { checkPullSecret } from '../../config/secrets.ts';
import { IGNITION_VERSION, readGivenIgnition } from '../../ignition/index.ts';
import { readTrustBundle, warnOfBundle } from '../../keys/index.ts';
import { explainUnusable } from '../../openshift/agent/unusable.ts';
import type { CustomValues, ProxyValues } from '../../openshift/agent/values.ts';

/* This file owns the judgement of the values that `customize` writes, whether options or resources gave them. */
/** Refuses values that no host can use. Their secrets are masked from now on. */
export function checkValues(values: CustomValues, redaction: Redaction): void {
  maskSecrets(values, redaction);
  checkAccess(values);
  checkNetwork(values);
}

function maskSecrets({ pullSecret, proxy = {} }: CustomValues, redaction: Redaction): void {
  if (pullSecret !== undefined) redaction.add(pullSecret);
  for (const address of [proxy.httpProxy, proxy.httpsProxy])
    if (address !== undefined && URL.canParse(address)) readUserInfo(new URL(address), redaction);
}

function checkAccess({ sshKeys = [], pullSecret }: CustomValues): void {
  // One reading of all lines: comment lines of an InfraEnv stay, as the installer keeps them.
  if (sshKeys.length > 0)
    refuseGiven('usage.ssh-key', 'SSH key', explainUnusable.sshKeys(sshKeys.join('\n')));
  if (pullSecret !== undefined) {
    refuseGiven(
      'usage.pull-secret',
      'pull secret',
      checkPullSecret(pullSecret, { isForHosts: true })[0],
    );
  }
}

function checkNetwork({ proxy = {}, hostnames = [], ...values }: CustomValues): void {
  const { ntpSources = [], exclusiveNtpSources = [] } = values;
  checkProxy(proxy);
  checkHostnames(hostnames);
  for (const source of [...ntpSources, ...exclusiveNtpSources])
    refuseGiven('usage.ntp', 'time server', explainUnusable.timeServer(source));
}

/** Checks that each host has one name, and each name one host. */
function checkHostnames(hostnames: NonNullable<CustomValues['hostnames']>): void {
  const macs = hostnames.map(({ macAddress }) => macAddress.toLowerCase());
  const twice = macs.find((mac, at) => macs.indexOf(mac) !== at);
  if (twice !== undefined) throw hostname(`${twice} has two names`, 'give each host one name');
  const names = hostnames.map(({ name }) => name);
  const shared = names.find((name, at) => names.indexOf(name) !== at);
  if (shared !== undefined)
    throw hostname(`"${shared}" is the name of two hosts`, 'give each host its own name');
  for (const name of names)
    refuseGiven('usage.hostname', `--hostname "${name}"`, explainUnusable.hostname(name));
}

const hostname = (problem: string, hint: string): UsageError =>
  new UsageError('usage.hostname', `--hostname: ${problem}`, { hint });

function checkProxy({ noProxy = '', httpProxy = '', httpsProxy = '' }: ProxyValues): void {
  for (const address of [httpProxy, httpsProxy])
    if (address !== '') refuseGiven('usage.proxy', 'proxy', explainUnusable.proxy(address));
  refuseGiven('usage.proxy', 'hosts without proxy', explainUnusable.noProxy(noProxy));
  if (noProxy !== '' && httpProxy + httpsProxy === '')
    refuseGiven(
      'usage.proxy',
      'proxy',
      'hosts are listed that need no proxy, and no proxy is set: set one, or leave the list out',
    );
}

export function refuseGiven(code: string, what: string, why: string | undefined): void {
  if (why !== undefined) throw new UsageError(code, joinProblem(what, why));
}

/** Lists what hosts accept, and was probably not intended. */
export function listDoubts(values: CustomValues): readonly string[] {
  const { trustBundle = '', ignitionOverride, installer = {} } = values;
  const { liveIgnition = [], destIgnition = [] } = installer;
  return [
    ...warnOfBundle(readTrustBundle(trustBundle)).map((doubt) => `trust bundle: ${doubt}`),
    ...(ignitionOverride === undefined
      ? []
      : readGivenIgnition(ignitionOverride, 'the Ignition override', IGNITION_VERSION).warnings),
    ...[...liveIgnition, ...destIgnition].flatMap(
      ({ name, bytes }) => readGivenIgnition(decodeUserText(bytes, name), name).warnings,
    ),
  ];
}
