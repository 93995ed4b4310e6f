import { mkdir, rename, writeFile } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, type BuildOptions, type Plugin } from 'esbuild';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** Threads start from files of their own, beside the program. */
const WORKERS = [
  'src/base/decode/decode-worker.mjs',
  'src/pour/hash-worker.mjs',
  'src/sites/identity/crypto-worker.mjs',
];

/** Processes start from files of their own, too: the memory of each has what it needs. */
const PROCESSES = ['src/service/workers/range-worker.ts'];

/** What few commands need is a file of its own too: to read it takes as long as all else together. */
const LAZY = ['src/base/s3/sdk.ts'];

/** In the program such a file is imported from beside it. */
const besideProgram: Plugin = {
  name: 'beside-program',
  setup(build) {
    build.onResolve({ filter: /^\.\/sdk\.ts$/ }, ({ kind }) =>
      kind === 'dynamic-import' ? { path: './sdk.mjs', external: true } : undefined,
    );
  },
};

/** Packages in CommonJS ask for modules of Node while they run, and modules for their own address. */
const FORMATS = {
  esm: {
    format: 'esm',
    banner: {
      js: `import { createRequire } from 'node:module';
const require = createRequire(import.meta.url);`,
    },
  },
  cjs: {
    format: 'cjs',
    outExtension: { '.js': '.cjs' },
    define: { 'import.meta.url': '__url' },
    banner: { js: "const __url = require('node:url').pathToFileURL(__filename).href;" },
  },
} as const;

type BundleOptions = {
  readonly name?: string;
  readonly plugins?: Plugin[];
  /** V8's code cache is for scripts, not for modules. */
  readonly format?: keyof typeof FORMATS;
};

/**
 * Writes a program as one file with all that it imports: to find and read over a thousand modules
 * takes more processor time than all else that a short command does.
 *
 * @param folder two levels below the root, as `src/base/program.ts` expects
 * @param options.name default: that of the entry
 * @returns the path of the program, and the packages of npm that it carries, as paths from the root
 */
export async function bundle(
  entry: string,
  folder: string,
  { name = basename(entry, '.ts'), plugins = [], format = 'esm' }: BundleOptions = {},
): Promise<{ program: string; packages: readonly string[] }> {
  await mkdir(folder, { recursive: true });
  const ofProgram = await write({
    entryPoints: { [name]: entry },
    outdir: folder,
    plugins: [...plugins, besideProgram],
    ...FORMATS[format],
  });
  const beside = [...WORKERS, ...PROCESSES, ...LAZY].map((path) => [
    basename(path, extname(path)),
    path,
  ]);
  const ofBeside = await write({
    entryPoints: Object.fromEntries(beside) as Record<string, string>,
    outdir: folder,
    ...FORMATS.esm,
    outExtension: { '.js': '.mjs' },
  });
  const packages = [...new Set([...ofProgram, ...ofBeside])].sort();
  return { program: join(folder, `${name}.${format === 'cjs' ? 'cjs' : 'js'}`), packages };
}

/** @returns the packages whose files went into the output */
async function write(options: BuildOptions): Promise<readonly string[]> {
  const { outputFiles, metafile } = await build({
    ...options,
    absWorkingDir: ROOT,
    bundle: true,
    platform: 'node',
    target: 'node20',
    minifySyntax: true,
    minifyWhitespace: true,
    logLevel: 'warning',
    write: false,
    metafile: true,
  });
  await Promise.all(outputFiles.map(({ path, contents }) => replaceFile(path, contents)));
  const inputs = Object.keys(metafile.inputs).map((path) => PACKAGE.exec(path)?.[0]);
  return inputs.filter((path) => path !== undefined);
}

/** The innermost package that a file belongs to. */
const PACKAGE = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/;

/** Replaces a file at once: the program may be running. */
export async function replaceFile(path: string, contents: string | Uint8Array): Promise<void> {
  const aside = join(dirname(path), `.${basename(path)}.${process.pid}`);
  await writeFile(aside, contents);
  await rename(aside, path);
}
