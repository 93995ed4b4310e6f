import { chmod, mkdir, rename, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, type BuildOptions, type Plugin } from 'esbuild';
import { digestProgram } from '../src/recipes/program-digest.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** Threads start from files of their own, beside the program. */
const WORKERS = [
  'src/base/decode/decode-worker.mjs',
  'src/iso/pour/hash-worker.mjs',
  'src/sites/identity/keys/crypto-worker.mjs',
];

/** Packages in CommonJS ask for modules of Node while they run. */
const REQUIRE = `import { createRequire } from 'node:module';
const require = createRequire(import.meta.url);`;

/** The last step of the build: what the built program answers when it is asked which program it is. */
export async function buildProgram(): Promise<void> {
  const dist = join(ROOT, 'dist');
  const main = await bundle('src/cli/main.ts', join(dist, 'cli'));
  await chmod(main, 0o755);
  const digest = await digestProgram(ROOT, dist);
  await replaceFile(join(dist, 'program-digest.json'), `${JSON.stringify({ digest })}\n`);
}

/**
 * Writes a program as one file with all that it imports: to find and read over a thousand modules
 * takes more processor time than all else that a short command does.
 *
 * @param folder two levels below the root, as `src/base/package-root.ts` expects
 * @param options.name default: that of the entry
 * @returns the path of the program.
 */
export async function bundle(
  entry: string,
  folder: string,
  { name = basename(entry, '.ts'), plugins = [] }: { name?: string; plugins?: Plugin[] } = {},
): Promise<string> {
  await mkdir(folder, { recursive: true });
  await write({ entryPoints: { [name]: entry }, outdir: folder, plugins });
  const threads = WORKERS.map((path) => [basename(path, '.mjs'), path]);
  await write({
    entryPoints: Object.fromEntries(threads) as Record<string, string>,
    outdir: folder,
    outExtension: { '.js': '.mjs' },
  });
  return join(folder, `${name}.js`);
}

async function write(options: BuildOptions): Promise<void> {
  const { outputFiles } = await build({
    ...options,
    absWorkingDir: ROOT,
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    banner: { js: REQUIRE },
    minifySyntax: true,
    minifyWhitespace: true,
    logLevel: 'warning',
    write: false,
  });
  await Promise.all(outputFiles.map(({ path, contents }) => replaceFile(path, contents)));
}

/** At once: the program may be running. */
async function replaceFile(path: string, contents: string | Uint8Array): Promise<void> {
  const aside = join(dirname(path), `.${basename(path)}.${process.pid}`);
  await writeFile(aside, contents);
  await rename(aside, path);
}
