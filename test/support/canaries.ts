/** Of the pull secrets that the fixtures have: the password, and the entry as it is written. */
const CANARIES = ['secret-word', 'dXNlcjpzZWNyZXQtd29yZA'];

/**
 * What a program printed about its work, checked for the secrets of the fixtures: whichever test started
 * it fails where it shows one.
 */
export function requireNoCanary(stderr: string): string {
  const found = CANARIES.find((canary) => stderr.includes(canary));
  if (found === undefined) return stderr;
  throw new Error(`the program printed the secret "${found}" of a fixture: ${stderr}`);
}
