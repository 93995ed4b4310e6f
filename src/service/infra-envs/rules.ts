import { SealiftError } from '../../base/errors.ts';
import { isHostAddress } from '../../base/ip-address.ts';
import {
  checkIgnition,
  IGNITION_VERSION,
  parseIgnition,
  readGivenIgnition,
} from '../../ignition/index.ts';
import { readTrustBundle, warnOfBundle } from '../../keys/index.ts';
import { redactAddresses } from '../../base/text/redact.ts';
import { joinProblem, printable } from '../../base/text/words.ts';
import { explainUnusable } from '../../openshift/agent/unusable.ts';
import { explainPullSecretFault, readPullSecret, type AuthFault } from '../../registry/index.ts';
import { ApiFailure } from '../openapi.ts';
import type { InfraEnv, InfraEnvParams, InfraEnvSettings, KernelArgument } from './infra-env.ts';

/* Owns the rules of an InfraEnv's settings. */

type SettingRules = {
  /** True for a new InfraEnv: assisted-service has other words there. */
  readonly isNew: boolean;
  /** Registries that each pull secret must name. */
  readonly registries: readonly string[];
};

/** The only type of image that this service has. */
export const IMAGE_TYPE = 'disconnected-iso';

/** Refuses settings that no image can be made from. Returns warnings of doubtful ones, with their fields. */
export function checkSettings(params: InfraEnvParams, rules: SettingRules): readonly string[] {
  const { image_type: type = IMAGE_TYPE, pull_secret: secret } = params;
  checkRendezvous(type, params.rendezvous_ip ?? '');
  if (type !== IMAGE_TYPE) {
    throw bad(`image type ${type} is not supported: this service has only ${IMAGE_TYPE}`);
  }
  // An empty one is as good as none in a change, and refused in a new InfraEnv.
  if (secret !== undefined && (secret !== '' || rules.isNew)) checkPullSecret(secret, rules);
  checkKeys(params.ssh_authorized_key, rules);
  checkNtp(params);
  for (const argument of params.kernel_arguments ?? []) checkKernelArgument(argument);
  checkProxy(params.proxy);
  checkConfigImage(params.config_image);
  return [
    ...checkTrustBundle(params.additional_trust_bundle),
    ...checkOverride(params.ignition_config_override),
  ];
}

/** Largest stored InfraEnv in bytes: the networks of some hundred hosts. */
const SIZE_LIMIT = 512 << 10;

/** Limits the sum of successive changes. */
export function checkSize(infraEnv: InfraEnv): void {
  const size = Buffer.byteLength(JSON.stringify(infraEnv) + infraEnv.pull_secret.reveal());
  if (size <= SIZE_LIMIT) return;
  throw new ApiFailure(413, `the InfraEnv has ${size} bytes, but may have at most ${SIZE_LIMIT}`);
}

/** Lists the servers of `ntp_sources`, or the additional ones if it is empty. */
export function listNtpSources({
  ntp_sources: sources,
  additional_ntp_sources: additional,
}: {
  readonly ntp_sources?: string | undefined;
  readonly additional_ntp_sources?: string | undefined;
}): readonly string[] {
  const text = isGiven(sources) ? sources : (additional ?? '');
  return text === '' ? [] : text.split(',').map((source) => source.trim());
}

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

/** The medium judges what is in the image. */
function checkConfigImage(text = ''): void {
  if (BASE64.test(text) && text.length % 4 === 0) return;
  throw bad('config_image is not base64');
}

function checkRendezvous(type: string, address: string): void {
  if (address === '') return;
  if (type !== IMAGE_TYPE) {
    throw bad('RendezvousIP is only supported for disconnected ISO infra-envs');
  }
  if (isHostAddress(address)) return;
  throw bad(`Invalid rendezvous IP: ${address} (must be a valid IPv4 or IPv6 address)`);
}

const bad = (reason: string): ApiFailure => new ApiFailure(400, reason);

/** Checks a pull secret, in assisted-service's words. Messages quote only the names of registries. */
function checkPullSecret(text: string, { isNew, registries }: SettingRules): void {
  const prefix = isNew ? 'pull secret for new infraEnv is invalid: ' : '';
  const read = readPullSecret(text);
  const why = explainPullSecretFault(read, FAULTS);
  if (why !== undefined) throw bad(`${prefix}pull secret ${why}`);
  const { entries } = read;
  for (const { registry, fault } of entries) {
    if (fault !== undefined) throw bad(`${prefix}invalid pull secret: ${AUTH[fault](registry)}`);
  }
  const missing = registries.find((each) =>
    namesOf(each).every((name) => entries.every(({ registry }) => registry !== name)),
  );
  if (missing === undefined) return;
  throw bad(`${prefix}pull secret must contain auth for "${missing}"`);
}

const FAULTS = {
  'empty': 'must be a well-formed JSON',
  'not-json': 'must be a well-formed JSON',
  'not-an-object': 'must be a well-formed JSON',
  'no-auths': "must contain 'auths' JSON-object field",
  'no-entries': "must contain 'auths' JSON-object field",
  'auths-not-an-object': "must contain 'auths' JSON-object field",
} as const;

const AUTH: Readonly<Record<AuthFault, (registry: string) => string>> = {
  'absent': (registry) => `'auth' field of "${registry}" is absent but should be a string`,
  'empty': (registry) => `'auth' for ${registry} is not in 'user:password' format`,
  'not-a-text': (registry) => `'auth' field of "${registry}" is not a text but should be a string`,
  'not-base64': (registry) => `'auth' field of "${registry}" is not base64-encoded`,
  'not-a-pair': (registry) => `'auth' for ${registry} is not in 'user:password' format`,
};

/** Names of a registry: Docker's clients use their own name for Docker Hub. */
const namesOf = (registry: string): readonly string[] =>
  registry === 'docker.io' ? [registry, 'https://index.docker.io/v1/'] : [registry];

function checkKeys(keys: string | undefined, { isNew }: SettingRules): void {
  if ((keys ?? '').trim() === '') return;
  const why = explainUnusable.sshKeys(keys ?? '');
  if (why === undefined) return;
  if (isNew) throw bad(`SSH key is not valid: ${why}`);
  throw bad(
    `SSH key: ${nameKey(keys ?? '')} does not match any supported type: ${KEY_TYPES}: ${why}`,
  );
}

/** As assisted-service lists them; others are accepted as well. */
const KEY_TYPES = 'ssh-rsa, ssh-ed25519, ecdsa-[VARIANT]';

const LONGEST_KEY = 64;

/** The beginning of a text that is not a key; a private key is not quoted. */
const nameKey = (text: string): string =>
  text.includes('PRIVATE KEY') ? 'a private key' : printable(text.trim()).slice(0, LONGEST_KEY);

function checkNtp({
  ntp_sources: sources,
  additional_ntp_sources: additional,
}: InfraEnvSettings): void {
  if (isGiven(sources) && isGiven(additional)) {
    throw bad('ntp_sources and additional_ntp_sources are mutually exclusive');
  }
  const text = isGiven(sources) ? sources : (additional ?? '');
  // assisted-service takes no blank, which a person may type after a comma.
  const why = listNtpSources({ ntp_sources: text })
    .map((source) => (source === '' ? 'an entry is empty' : explainUnusable.timeServer(source)))
    .find((each) => each !== undefined);
  if (why !== undefined) throw bad(`Invalid NTP source: ${text}: ${why}`);
}

const isGiven = (text: string | undefined): text is string => text !== undefined && text !== '';

function checkKernelArgument({ operation }: Partial<KernelArgument>): void {
  if (operation === 'append') return;
  throw bad(`Only kernel argument operation append is supported.  Got ${operation ?? ''}`);
}

/** Schemes of a proxy: installers refuse others. */
const PROXIES = [
  ['http_proxy', 'HTTP', ['http:']],
  ['https_proxy', 'HTTPS', ['http:', 'https:']],
] as const;

function checkProxy(proxy: NonNullable<InfraEnvSettings['proxy']> = {}): void {
  for (const [name, title, schemes] of PROXIES) {
    const text = proxy[name] ?? '';
    const why = text === '' ? undefined : explainProxy(text, schemes);
    if (why !== undefined) throw bad(`Failed to validate ${title} Proxy: ${why}`);
  }
  const { no_proxy: list = '' } = proxy;
  const why = explainUnusable.noProxy(list);
  if (why !== undefined) throw bad(`${NO_PROXY}: ${list} is not a valid no_proxy entry: ${why}`);
}

/** Explains in assisted-service's words why a proxy cannot be used; the password is not quoted. */
function explainProxy(text: string, schemes: readonly string[]): string | undefined {
  const why = explainUnusable.proxy(text);
  const hasScheme = schemes.some((scheme) => text.toLowerCase().startsWith(`${scheme}//`));
  if (why === undefined && hasScheme) return undefined;
  const shown = `'${redactAddresses(text)}'`;
  // A host with a port looks like a scheme.
  if (!hasScheme && /^[\w.+-]+:(?:\/\/)?[\w.-]+/.test(text)) {
    return `The URL scheme must be http and specified in the URL: ${shown}`;
  }
  return `Proxy URL format is not valid: ${shown}${why === undefined ? '' : `: ${why}`}`;
}

const NO_PROXY =
  'NO Proxy is a comma-separated list of destination domain names, domains, IP addresses or other network ' +
  "CIDRs. A domain can be prefaced with '.' to include all subdomains of that domain. Use '*' to bypass proxy " +
  'for all destinations with OpenShift 4.8 or later.';

function checkTrustBundle(bundle: string | undefined): readonly string[] {
  if (!isGiven(bundle)) return [];
  const why = explainUnusable.trustBundle(bundle);
  if (why !== undefined) throw bad(`invalid block: ${joinProblem('additional_trust_bundle', why)}`);
  return warnOfBundle(readTrustBundle(bundle)).map((each) => `additional_trust_bundle: ${each}`);
}

/** Checks an override by the whole specification of Ignition 3.1 and 3.2, as assisted-service does. */
function checkOverride(override: string | undefined): readonly string[] {
  if (!isGiven(override)) return [];
  try {
    const config = parseIgnition(override, OVERRIDE, IGNITION_VERSION);
    const problems = checkIgnition(config, OVERRIDE);
    const report = problems.map(({ path = '', problem }) => `error at ${path}: ${problem}`);
    if (problems.length > 0) throw refuseOverride('config is not valid', report.join('\n'));
    return readGivenIgnition(override, OVERRIDE, IGNITION_VERSION).warnings;
  } catch (error) {
    if (!(error instanceof SealiftError)) throw error;
    const isOther = error.code === 'ignition.version';
    const problem = isOther ? 'unsupported config version' : 'config is not valid';
    throw refuseOverride(problem, error.message);
  }
}

const OVERRIDE = 'ignition_config_override';

const refuseOverride = (problem: string, report: string): ApiFailure =>
  bad(`error parsing ignition: ${problem}, error report: ${report}`);
