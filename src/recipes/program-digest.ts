import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { formatCanonicalJson, type Json } from '../base/canonical-json.ts';
import { digestOf, isDigest, type Digest } from '../base/digest.ts';
import { readFileIfPresent } from '../base/files.ts';
import { PACKAGE_ROOT } from '../base/package-root.ts';

const ROOT = fileURLToPath(PACKAGE_ROOT);
/** `dist` of a built program, `src` of one that runs from its sources. */
const CODE = fileURLToPath(new URL('..', import.meta.url));
const WRITTEN = 'program-digest.json';

/**
 * A digest of the program: its code, its templates and schemas, and the versions of what it depends on.
 * The build writes it; from sources it is computed.
 */
export async function readProgramDigest(): Promise<Digest> {
  const text = (await readFileIfPresent(join(CODE, WRITTEN)))?.toString('utf8');
  const { digest } = text === undefined ? {} : (JSON.parse(text) as { digest?: string });
  return digest !== undefined && isDigest(digest) ? digest : digestProgram(ROOT, CODE);
}

/**
 * @param root folder with `templates`, `schema` and the package files
 * @param code folder with the code
 */
export async function digestProgram(root: string, code: string): Promise<Digest> {
  const folders = [code, join(root, 'templates'), join(root, 'schema')];
  const files = await Promise.all(folders.map(listDigests));
  return digestOf(formatCanonicalJson([...files, await listDependencies(root)]));
}

async function listDigests(folder: string): Promise<Json> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && entry.name !== WRITTEN);
  const digests = await Promise.all(
    files.map(async ({ parentPath, name }) => {
      const path = join(parentPath, name);
      return [path.slice(folder.length), digestOf(await readFile(path))] as const;
    }),
  );
  return Object.fromEntries(digests);
}

/** Of packages that run with the program: version and integrity, as the lock file has them. */
async function listDependencies(root: string): Promise<Json> {
  const text = await readFileIfPresent(join(root, 'package-lock.json'));
  // Without the lock file this is a package that was installed without its digest: the ranges are what is known.
  if (!text) return (await readFile(join(root, 'package.json'))).toString('utf8');
  const { packages } = JSON.parse(text.toString('utf8')) as {
    readonly packages: Readonly<
      Record<string, { readonly version?: string; readonly integrity?: string; dev?: boolean }>
    >;
  };
  const run = Object.entries(packages).filter(([name, { dev }]) => name !== '' && dev !== true);
  return Object.fromEntries(
    run.map(([name, { version = '', integrity = '' }]) => [name, `${version} ${integrity}`]),
  );
}
