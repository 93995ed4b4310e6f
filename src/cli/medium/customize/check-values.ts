import { UsageError } from '../../../base/errors.ts';
import { rememberSecret } from '../../../base/text/redact.ts';
import { checkPullSecret, checkSshKey } from '../../../config/secrets.ts';
import type { CustomValues, ProxyValues } from '../../../openshift/agent/values.ts';
import { readTrustBundle } from '../../../sites/rules/credentials.ts';

/**
 * Refuses values that no host can use.
 *
 * @throws UsageError `usage.ssh-key`, `usage.pull-secret`, `usage.trust-bundle`, `usage.proxy`, `usage.hostname`, `usage.ntp`
 */
export function checkValues(values: CustomValues): void {
  checkAccess(values);
  checkNetwork(values);
}

function checkAccess({ sshKeys = [], pullSecret, trustBundle }: CustomValues): void {
  for (const key of sshKeys) refuse('usage.ssh-key', 'SSH key', checkSshKey(key));
  if (pullSecret !== undefined) {
    rememberSecret(pullSecret);
    refuse('usage.pull-secret', 'pull secret', checkPullSecret(pullSecret)[0]);
  }
  if (trustBundle === undefined) return;
  const { problem, certificates } = readTrustBundle(trustBundle);
  const why = problem ?? (certificates.length === 0 ? 'has no certificate' : undefined);
  refuse('usage.trust-bundle', 'trust bundle', why);
}

function checkNetwork({ proxy = {}, ntpSources = [], hostnames = [] }: CustomValues): void {
  checkProxy(proxy);
  checkHostnames(hostnames);
  const odd = ntpSources.find((source) => !/^[A-Za-z0-9][A-Za-z0-9.:-]*$/.test(source));
  if (odd !== undefined)
    refuse('usage.ntp', 'time server', `"${odd}" is neither a name nor an address`);
}

/** A host has one name, and a name one host; every host is localhost to itself. */
function checkHostnames(hostnames: NonNullable<CustomValues['hostnames']>): void {
  const macs = hostnames.map(({ macAddress }) => macAddress.toLowerCase());
  const twice = macs.find((mac, at) => macs.indexOf(mac) !== at);
  if (twice !== undefined) throw hostname(`${twice} has two names`, 'give each host one name');
  const names = hostnames.map(({ name }) => name);
  const shared = names.find((name, at) => names.indexOf(name) !== at);
  if (shared !== undefined)
    throw hostname(`"${shared}" is the name of two hosts`, 'give each host a name of its own');
  if (names.some((name) => /^localhost(?:\.|$)/.test(name)))
    throw hostname('localhost is the name of no single host', 'give the host another name');
}

const hostname = (problem: string, hint: string): UsageError =>
  new UsageError('usage.hostname', `--hostname: ${problem}`, { hint });

function checkProxy({ noProxy = '', httpProxy = '', httpsProxy = '' }: ProxyValues): void {
  for (const address of [httpProxy, httpsProxy])
    if (address !== '') refuse('usage.proxy', 'proxy', explainProxy(address));
  if (/[\s"]/.test(noProxy))
    refuse('usage.proxy', 'hosts without proxy', 'have a space or a quotation mark between them');
  if (noProxy !== '' && httpProxy + httpsProxy === '')
    refuse('usage.proxy', 'proxy', 'there are hosts without proxy, and no proxy for others');
}

function explainProxy(address: string): string | undefined {
  const { password, protocol } = URL.canParse(address)
    ? new URL(address)
    : { password: '', protocol: '' };
  if (password !== '') rememberSecret(decodeURIComponent(password));
  if (/[\s"]/.test(address)) return 'has a space or a quotation mark';
  return ['http:', 'https:'].includes(protocol) ? undefined : 'is not an http or https address';
}

function refuse(code: string, what: string, why: string | undefined): void {
  if (why !== undefined) throw new UsageError(code, `${what}: ${why}`);
}
