/**
 * The text of the first of these environment variables that is set; one that is empty counts as not
 * set (docs/environment.md).
 */
export function variableOf(
  env: NodeJS.ProcessEnv,
  ...names: readonly string[]
): string | undefined {
  return names.map((name) => env[name]).find((text) => text !== undefined && text !== '');
}
