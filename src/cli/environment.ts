import { ConfigError } from '../base/errors.ts';
import { parseGraphUrl } from '../openshift/release/update-graph.ts';

/**
 * SOURCE_DATE_EPOCH, seconds since 1970; undefined where it is not set.
 * reproducible-builds.org/specs/source-date-epoch: whole seconds, in decimal.
 *
 * @throws ConfigError `env.source-date-epoch`
 */
export function readEpoch(env: NodeJS.ProcessEnv): number | undefined {
  const text = env['SOURCE_DATE_EPOCH'];
  if (text === undefined || text === '') return undefined;
  if (/^\d{1,10}$/.test(text)) return Number(text);
  throw new ConfigError(
    'env.source-date-epoch',
    `SOURCE_DATE_EPOCH is "${text}", not whole seconds of at most ten digits`,
  );
}

/**
 * UPDATE_URL_OVERRIDE, as openshift-install knows it; undefined where it is not set.
 *
 * @throws ConfigError `graph.url-malformed`
 */
export function readGraphUrl(env: NodeJS.ProcessEnv): string | undefined {
  const text = env['UPDATE_URL_OVERRIDE'];
  if (text === undefined || text === '') return undefined;
  parseGraphUrl(text);
  return text;
}
