/** The text of the first of these variables that is set; an empty one is not (docs/environment.md). */
export function variableOf(
  env: NodeJS.ProcessEnv,
  ...names: readonly string[]
): string | undefined {
  return names.map((name) => env[name]).find((text) => text !== undefined && text !== '');
}
