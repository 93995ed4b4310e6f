import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Of the pull secrets that the fixtures have: the password, and the entry as it is written. */
const CANARIES = ['secret-word', 'dXNlcjpzZWNyZXQtd29yZA'];

/**
 * What a program printed about its work, checked for the secrets of the fixtures: whichever test started
 * it fails where it shows one.
 */
export function requireNoCanary(printed: string): string {
  const found = CANARIES.find((canary) => printed.includes(canary));
  if (found === undefined) return printed;
  throw new Error(`the program printed the secret "${found}" of a fixture: ${printed}`);
}

/** Commands that print contents that are asked for, which may be secrets. */
const PRINTS_CONTENTS = /^(?:cat|ignition|init)$/;

/** The same of a result. */
export const requireNoCanaryResult = (args: readonly string[], stdout: string): string =>
  PRINTS_CONTENTS.test(args[0] ?? '') ? stdout : requireNoCanary(stdout);

/** Files that a test writes, and media and what is for hosts, which have what they need. */
const MAY_HAVE_SECRETS =
  /(?:\.iso|\.partial|appliance-config\.yaml|config\.yaml|auth\.json|pull-?secret.*|\.ign)$/i;

/** Bytes; of larger files, none is a report, a result of a stage, a plan or a log. */
const MAX_SIZE = 4 << 20;

/** The same of every report, plan, result of a stage and log below a directory that a test leaves behind. */
export function requireNoCanaryFiles(directory: string): void {
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (!entry.isFile() || MAY_HAVE_SECRETS.test(entry.name)) continue;
    if (statSync(path).size > MAX_SIZE) continue;
    const text = readFileSync(path, 'latin1');
    if (/^kind: ApplianceConfig$/m.test(text)) continue; // a configuration that the test wrote
    const found = CANARIES.find((canary) => text.includes(canary));
    if (found !== undefined) throw new Error(`${path} has the secret "${found}" of a fixture`);
  }
}
