import { readInputFile } from '../base/disk/files.ts';
import { ConfigError } from '../base/errors.ts';
import { kindOfHost } from '../base/http/address.ts';
import { type Http, createHttp } from '../base/http/http.ts';
import { reportRequests } from '../base/http/report-requests.ts';
import { ROOTS_RULES, ROOTS_VARIABLES, readRootsOf } from '../base/http/tls.ts';
import { withoutUndefined } from '../base/lists.ts';
import { createRetries } from '../base/retry.ts';
import type { Redaction } from '../base/text/redact.ts';
import type { ApplianceConfig } from '../config/appliance-config.ts';
import type { EventListener } from '../engine/index.ts';
import { explainRoots, warnOfRoots, hasRoots } from '../keys/index.ts';
import { type WritingClient, createRegistryClient } from '../registry/index.ts';
import {
  type RegistriesConfPlaces,
  loadRegistriesConf,
  credentialsFromPullSecret,
  credentialsFromFiles,
  listUnusableEntries,
} from '../registry/index.ts';

/* Owns how the registries of a configuration and of the environment are reached. */

export type RegistryAccessOptions = RegistriesConfPlaces & {
  /** Masks the secrets that are read. */
  readonly redaction: Redaction;
  /** Without a pull secret, only credential files of the environment are used. */
  readonly config: {
    readonly pullSecret?: NonNullable<ApplianceConfig['pullSecret']>;
    readonly build: Pick<
      ApplianceConfig['build'],
      'caBundle' | 'registriesConf' | 'insecureRegistries' | 'retryFor'
    >;
  };
  readonly emit: EventListener;
};

export type RegistryAccess = {
  readonly client: WritingClient;
  readonly http: Http;
  /** PEM. */
  readonly caBundle: string | undefined;
  readonly registriesConf: Awaited<ReturnType<typeof loadRegistriesConf>>;
};

/**
 * Opens the access to registries.
 * @throws ConfigError for files that the configuration names
 */
export async function openRegistryAccess(options: RegistryAccessOptions): Promise<RegistryAccess> {
  const { config, env, redaction, emit } = options;
  const { build, pullSecret } = config;
  const { retryFor, insecureRegistries } = build;
  const retries = createRetries(withoutUndefined({ onEvent: emit, retryFor }));
  const http = reportRequests(createHttp({ env, redaction, retries }), emit);
  const caBundle = build.caBundle === undefined ? undefined : readRoots(build.caBundle, emit);
  const registriesConf = await loadRegistriesConf(build.registriesConf, options);
  judgeRootsOf(env, emit);
  warnOfPullSecret(options);
  warnOfInsecure(options);
  const client = createRegistryClient({
    http,
    registriesConf,
    explainRoots,
    ...withoutUndefined({ caBundle }),
    credentials: [
      ...(pullSecret
        ? [credentialsFromPullSecret(pullSecret.reveal(), { name: 'pullSecret', redaction })]
        : []),
      credentialsFromFiles(env, redaction),
    ],
    insecureRegistries,
  });
  return { client, http, caBundle, registriesConf };
}

function readRoots(path: string, emit: RegistryAccessOptions['emit']): string {
  const bytes = readInputFile(path, ROOTS_RULES);
  const why = explainRoots(bytes);
  if (why !== undefined) throw malformedRoots(path, why);
  for (const doubt of warnOfRoots(bytes)) emit({ type: 'warning', message: `${path}: ${doubt}` });
  return bytes.toString('latin1');
}

const malformedRoots = (path: string, why: string): ConfigError =>
  new ConfigError('ca-bundle.malformed', `${path}: ${why}`, {
    hint: 'name a file with certificates in PEM',
  });

/**
 * Judges the roots that the environment names. Files of systems have blocks that OpenSSL skips, so only a
 * file without any root is refused.
 */
function judgeRootsOf(env: NodeJS.ProcessEnv, emit: RegistryAccessOptions['emit']): void {
  const judged = new Set<string>();
  for (const name of ROOTS_VARIABLES) {
    const named = readRootsOf(env, name);
    if (named && judged.has(named.path)) continue;
    if (named) judged.add(named.path);
    const why = named && explainRoots(named.bytes);
    if (!named || why === undefined) continue;
    const { path, bytes } = named;
    if (!hasRoots(bytes)) throw malformedRoots(`${name} names ${path}`, why);
    emit({
      type: 'warning',
      message: `${name} names ${path}: ${why}: what follows is not trusted`,
    });
  }
}

/** The build does not stop for an unusable entry, which may never be needed. */
function warnOfPullSecret({ config, emit }: RegistryAccessOptions): void {
  for (const { key, reason } of listUnusableEntries(config.pullSecret?.reveal() ?? '')) {
    emit({ type: 'warning', message: `pullSecret entry ${key} cannot be used: ${reason}` });
  }
}

/** Warns about insecure registries, except loopback, whose traffic never leaves this machine. */
function warnOfInsecure({ config, emit }: RegistryAccessOptions): void {
  for (const host of config.build.insecureRegistries) {
    const { hostname } = URL.canParse(`https://${host}`)
      ? new URL(`https://${host}`)
      : { hostname: host };
    if (kindOfHost(hostname) === 'loopback') continue;
    const message =
      `TLS of ${host} is not verified: passwords may be sent without encryption, ` +
      'or to another server that answers in its place';
    emit({ type: 'warning', message });
  }
}
