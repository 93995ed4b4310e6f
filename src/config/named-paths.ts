import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { visit } from 'yaml';
import { parseDocument } from '../shape/parse-text.ts';
import { isWithin } from '../base/disk/claim-output.ts';

/** PATH_MAX of Linux. */
const MAX_PATH = 4096;

/** `file:PATH`, `file:///PATH` and `oci:PATH`. */
const SCHEME = /^(?:file|oci):(?:\/\/(?=\/))?/;

/**
 * The files and directories that a configuration names under any key, so that nothing overwrites
 * them: whatever text of it is the path of something that exists. Absolute paths.
 *
 * @param directory where relative paths begin
 */
export function listNamedPaths(text: string, directory: string): readonly string[] {
  const paths = new Set<string>();
  visit(parseDocument(text, { logLevel: 'silent', uniqueKeys: false }), {
    Scalar: (_key, { value }) => {
      if (typeof value !== 'string' || value.length > MAX_PATH || /[\n\0]/.test(value)) return;
      for (const path of listReadings(value)) {
        if (isNamed(value, { path: resolve(directory, path), directory })) {
          paths.add(resolve(directory, path));
        }
      }
    },
  });
  return [...paths];
}

/** An image layout may have a tag behind its path. */
function listReadings(value: string): readonly string[] {
  const path = value.replace(SCHEME, '');
  return [path, path.replace(/:[^/:]*$/, '')];
}

/** A word that happens to be the name of a folder does not mean the folder. */
function isNamed(
  value: string,
  { path, directory }: { readonly path: string; readonly directory: string },
): boolean {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isDirectory() !== true) return found !== undefined;
  return (value.includes('/') || SCHEME.test(value)) && !isWithin(directory, path);
}
