/**
 * Gives variables of an environment file of systemd other values. A variable that the file does not have is left
 * out: the release does not know it.
 */
export const setVariables = (text: string, values: Readonly<Record<string, string>>): string =>
  text.replaceAll(/^([A-Z][A-Z0-9_]*)=.*$/gm, (line, name: string) =>
    Object.hasOwn(values, name) ? `${name}=${values[name] ?? ''}` : line,
  );
