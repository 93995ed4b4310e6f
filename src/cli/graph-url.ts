import { parseGraphUrl } from '../openshift/release/update-graph.ts';

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
