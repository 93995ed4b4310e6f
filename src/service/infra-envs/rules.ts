import { SealiftError } from '../../base/errors.ts';
import { isHostAddress } from '../../base/ip-address.ts';
import { IGNITION_VERSION, readGivenIgnition } from '../../ignition/index.ts';
import { readTrustBundle, warnOfBundle } from '../../keys/index.ts';
import { joinProblem } from '../../base/text/words.ts';
import { explainUnusable } from '../../openshift/agent/unusable.ts';
import { explainPullSecretFault, readPullSecret, type AuthFault } from '../../registry/index.ts';
import { ApiFailure } from '../openapi.ts';
import { checkMaps } from './networks.ts';
import type { InfraEnv, InfraEnvParams, InfraEnvSettings, KernelArgument } from './infra-env.ts';

/* Owns the rules of an InfraEnv's settings. */

type PullSecretRules = {
  /** Start of messages about the pull secret. */
  readonly prefix?: string;
  /** Registries that each pull secret must name. */
  readonly registries: readonly string[];
};

/** The only type of image that this service has. */
export const IMAGE_TYPE = 'disconnected-iso';

/**
 * Refuses settings that no image can be made from.
 *
 * @returns warnings of settings that were probably not intended, each with its field
 * @throws ApiFailure 400
 */
export function checkSettings(params: InfraEnvParams, rules: PullSecretRules): readonly string[] {
  const { image_type: type = IMAGE_TYPE, pull_secret: secret } = params;
  checkRendezvous(type, params.rendezvous_ip ?? '');
  if (type !== IMAGE_TYPE) {
    throw bad(`image type ${type} is not supported: this service has only ${IMAGE_TYPE}`);
  }
  if (secret !== undefined) checkPullSecret(secret, rules);
  checkKeys(params.ssh_authorized_key);
  checkNtp(params);
  for (const argument of params.kernel_arguments ?? []) checkKernelArgument(argument);
  checkMaps(params.static_network_config ?? []);
  checkProxy(params.proxy);
  return [
    ...checkTrustBundle(params.additional_trust_bundle),
    ...checkOverride(params.ignition_config_override),
  ];
}

/** Largest stored InfraEnv in bytes: the networks of some hundred hosts. */
const SIZE_LIMIT = 512 << 10;

/** Limits the sum of successive changes. @throws ApiFailure 413 */
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
  readonly ntp_sources?: string | null | undefined;
  readonly additional_ntp_sources?: string | null | undefined;
}): readonly string[] {
  const text = isGiven(sources) ? sources : (additional ?? '');
  return text === '' ? [] : text.split(',').map((source) => source.trim());
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
function checkPullSecret(text: string, { prefix = '', registries }: PullSecretRules): void {
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

function checkKeys(keys: string | null | undefined): void {
  if ((keys ?? '').trim() === '') return;
  const why = explainUnusable.sshKeys(keys ?? '');
  if (why !== undefined) throw bad(`SSH key is not valid: ${why}`);
}

function checkNtp({
  ntp_sources: sources,
  additional_ntp_sources: additional,
}: InfraEnvSettings): void {
  if (isGiven(sources) && isGiven(additional)) {
    throw bad('ntp_sources and additional_ntp_sources are mutually exclusive');
  }
  const wrong = listNtpSources({ ntp_sources: sources, additional_ntp_sources: additional }).find(
    (source) => explainUnusable.timeServer(source) !== undefined,
  );
  if (wrong === undefined) return;
  throw bad(`Invalid NTP source: ${wrong === '' ? 'an entry is empty' : wrong}`);
}

const isGiven = (text: string | null | undefined): text is string =>
  text !== undefined && text !== null && text !== '';

function checkKernelArgument({ operation, value }: KernelArgument): void {
  if (operation !== 'append') {
    throw bad(`Only kernel argument operation append is supported.  Got ${operation}`);
  }
  if (value === '' || /[\0\n\r]/.test(value))
    throw bad('kernel argument is empty or has line breaks');
}

function checkProxy(proxy: InfraEnvSettings['proxy']): void {
  for (const name of ['http_proxy', 'https_proxy'] as const) {
    const text = proxy?.[name] ?? '';
    const why = text === '' ? undefined : explainUnusable.proxy(text);
    if (why !== undefined) throw bad(joinProblem(name, why));
  }
  const why = explainUnusable.noProxy(proxy?.no_proxy ?? '');
  if (why !== undefined) throw bad(joinProblem('no_proxy', why));
}

function checkTrustBundle(bundle: string | null | undefined): readonly string[] {
  if (!isGiven(bundle)) return [];
  const why = explainUnusable.trustBundle(bundle);
  if (why !== undefined) throw bad(joinProblem('additional_trust_bundle', why));
  return warnOfBundle(readTrustBundle(bundle)).map((each) => `additional_trust_bundle: ${each}`);
}

/** Checks an override against Ignition 3.1 and 3.2, the versions that assisted-service accepts. */
function checkOverride(override: string | null | undefined): readonly string[] {
  if (!isGiven(override)) return [];
  try {
    return readGivenIgnition(override, 'ignition_config_override', IGNITION_VERSION).warnings;
  } catch (error) {
    if (!(error instanceof SealiftError)) throw error;
    const problem =
      error.code === 'ignition.version' ? 'unsupported config version' : 'config is not valid';
    throw bad(`error parsing ignition: ${problem}`);
  }
}
