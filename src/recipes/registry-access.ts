import { kindOfHost } from '../base/http/address.ts';
import { createHttp, type Http } from '../base/http/http.ts';
import { reportRequests } from '../base/http/body.ts';
import { readInputFile } from '../base/disk/files.ts';
import { createRetries } from '../base/retry.ts';
import { withoutUndefined } from '../base/lists.ts';
import type { ApplianceConfig } from '../config/appliance-config.ts';
import type { EventListener } from '../engine/engine.ts';
import { createRegistryClient, type WritingClient } from '../registry/client.ts';
import {
  credentialsFromFiles,
  credentialsFromPullSecret,
  listUnusableEntries,
} from '../registry/client/credentials.ts';
import { loadRegistriesConf, type RegistriesConfPlaces } from '../registry/client/mirror-files.ts';

export type RegistryAccessOptions = RegistriesConfPlaces & {
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

/** The way to registries that a configuration and the environment describe. */
export type RegistryAccess = {
  readonly client: WritingClient;
  readonly http: Http;
  /** PEM. */
  readonly caBundle: string | undefined;
  readonly registriesConf: Awaited<ReturnType<typeof loadRegistriesConf>>;
};

/** @throws ConfigError of what the configuration names */
export async function openRegistryAccess(options: RegistryAccessOptions): Promise<RegistryAccess> {
  const { config, env, emit } = options;
  const { build, pullSecret } = config;
  const { retryFor, insecureRegistries } = build;
  const retries = createRetries(withoutUndefined({ onEvent: emit, retryFor }));
  const http = reportRequests(createHttp({ env, retries }), emit);
  const caBundle =
    build.caBundle === undefined
      ? undefined
      : readInputFile(build.caBundle, { domain: 'ca-bundle' }).toString('utf8');
  const registriesConf = await loadRegistriesConf(build.registriesConf, options);
  warnOfPullSecret(options);
  warnOfInsecure(options);
  const client = createRegistryClient({
    http,
    registriesConf,
    ...withoutUndefined({ caBundle }),
    credentials: [
      ...(pullSecret ? [credentialsFromPullSecret(pullSecret.reveal(), 'pullSecret')] : []),
      credentialsFromFiles(env),
    ],
    insecureRegistries,
  });
  return { client, http, caBundle, registriesConf };
}

/** Of an entry nobody may ever need the build does not stop. */
function warnOfPullSecret({ config, emit }: RegistryAccessOptions): void {
  for (const { key, reason } of listUnusableEntries(config.pullSecret?.reveal() ?? '')) {
    emit({ type: 'warning', message: `pullSecret entry ${key} cannot be used: ${reason}` });
  }
}

/** Loopback traffic never leaves this machine. */
function warnOfInsecure({ config, emit }: RegistryAccessOptions): void {
  for (const host of config.build.insecureRegistries) {
    const { hostname } = URL.canParse(`https://${host}`)
      ? new URL(`https://${host}`)
      : { hostname: host };
    if (kindOfHost(hostname) === 'loopback') continue;
    const message =
      `TLS of ${host} is not verified: passwords are sent to it without encryption, ` +
      'or to whoever answers in its place';
    emit({ type: 'warning', message });
  }
}
