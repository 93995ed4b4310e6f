import { join } from 'node:path';
import { withoutUndefined } from '../base/members.ts';
import type { Secret } from '../config/secret/secret.ts';
import { createApp, type AnsweredRequest } from './app.ts';
import { createAuth, type AuthSettings } from './auth/identity.ts';
import { createUrlTokens } from './auth/url-token.ts';
import type { App } from './context.ts';
import { readOpenApi } from './openapi.ts';
import { createMetrics } from './probes.ts';
import { NO_RELEASES } from './releases.ts';
import { readServiceKey } from './service-key.ts';
import { openFileState } from './state/file-state.ts';
import { openPostgresState } from './state/postgres-state.ts';

export type ServiceSettings = {
  readonly data: string;
  /** Of PostgreSQL; absent: records are files below `data`. */
  readonly database?: string;
  readonly key: Secret;
  readonly auth: AuthSettings;
  readonly publicUrl?: string;
  readonly isTls: boolean;
  /** Milliseconds that the URL of an image is good for, where there is authentication. */
  readonly urlLifetime: number;
  readonly now: () => number;
  readonly onAnswer: (request: AnsweredRequest) => void;
  /** Aborted when the service ends. */
  readonly signal: AbortSignal;
};

/**
 * The service with its records open. Close it when no request is left.
 *
 * @throws what `openFileState`, `openPostgresState`, `readServiceKey` and `createAuth` throw
 */
export async function openService(
  settings: ServiceSettings,
): Promise<{ readonly app: App; readonly close: () => Promise<void> }> {
  const { data, database, auth, isTls, now, signal, urlLifetime: lifetime } = settings;
  const key = readServiceKey(settings.key);
  const service = {
    key,
    auth: createAuth(auth),
    urlTokens: createUrlTokens(key.derive('url tokens'), { lifetime, now }),
    releases: NO_RELEASES,
    openApi: readOpenApi(),
    ...withoutUndefined({ publicUrl: settings.publicUrl }),
    isTls,
    now,
    signal,
  };
  const state = await (database === undefined
    ? openFileState(join(data, 'records'))
    : openPostgresState(database));
  const metrics = createMetrics();
  const app = createApp(
    { ...service, state },
    {
      metrics,
      onAnswer(request) {
        metrics.count(request);
        settings.onAnswer(request);
      },
    },
  );
  return { app, close: state.close };
}
