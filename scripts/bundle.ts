import { chmod, mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, transform, type BuildOptions, type Plugin } from 'esbuild';
import { digestProgram } from '../src/base/program.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** Threads start from files of their own, beside the program. */
const WORKERS = [
  'src/base/decode/decode-worker.mjs',
  'src/pour/hash-worker.mjs',
  'src/sites/identity/crypto-worker.mjs',
];

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

/** Packages in CommonJS ask for modules of Node while they run. */
const REQUIRE = `import { createRequire } from 'node:module';
const require = createRequire(import.meta.url);`;

/** The last step of the build: what the built program answers when it is asked which program it is. */
export async function buildProgram(): Promise<void> {
  const dist = join(ROOT, 'dist');
  const { packages } = await bundle('src/cli/main.ts', join(dist, 'cli'));
  await writeStart(join(dist, 'cli/start.cjs'));
  await replaceFile(join(dist, 'third-party-licenses.txt'), await joinLicenses(packages));
  const digest = await digestProgram(ROOT, dist);
  await replaceFile(join(dist, 'program-digest.json'), `${JSON.stringify({ digest })}\n`);
}

/** The command: a file that any Node since 12 can read, and which then loads the program or says why not. */
async function writeStart(path: string): Promise<void> {
  const source = await readFile(join(ROOT, 'src/cli/start.cts'), 'utf8');
  const { code } = await transform(source, {
    loader: 'ts',
    platform: 'node',
    target: 'node12.22',
    format: 'cjs',
  });
  await replaceFile(path, `#!/usr/bin/env node\n${code}`);
  await chmod(path, 0o755);
}

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
  { name = basename(entry, '.ts'), plugins = [] }: { name?: string; plugins?: Plugin[] } = {},
): Promise<{ program: string; packages: readonly string[] }> {
  await mkdir(folder, { recursive: true });
  const ofProgram = await write({
    entryPoints: { [name]: entry },
    outdir: folder,
    plugins: [...plugins, besideProgram],
  });
  const beside = [...WORKERS, ...LAZY].map((path) => [basename(path, extname(path)), path]);
  const ofBeside = await write({
    entryPoints: Object.fromEntries(beside) as Record<string, string>,
    outdir: folder,
    outExtension: { '.js': '.mjs' },
  });
  const packages = [...new Set([...ofProgram, ...ofBeside])].sort();
  return { program: join(folder, `${name}.js`), packages };
}

/** @returns the packages whose files went into the output */
async function write(options: BuildOptions): Promise<readonly string[]> {
  const { outputFiles, metafile } = await build({
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
    metafile: true,
  });
  await Promise.all(outputFiles.map(({ path, contents }) => replaceFile(path, contents)));
  const inputs = Object.keys(metafile.inputs).map((path) => PACKAGE.exec(path)?.[0]);
  return inputs.filter((path) => path !== undefined);
}

/** The innermost package that a file belongs to. */
const PACKAGE = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/;

/** What the licenses of bundled packages want: that their texts travel with the program. */
async function joinLicenses(packages: readonly string[]): Promise<string> {
  const texts = packages.map(async (path) => {
    const folder = join(ROOT, path);
    const { name, version, license, homepage } = JSON.parse(
      await readFile(join(folder, 'package.json'), 'utf8'),
    ) as Record<'name' | 'version' | 'license' | 'homepage', string>;
    const files = (await readdir(folder)).filter((file) => /^(licen[cs]e|notice)/i.test(file));
    const contents = files.sort().map((file) => readFile(join(folder, file), 'utf8'));
    const text = contents.length > 0 ? await Promise.all(contents) : [`See ${homepage}`];
    return [`${name} ${version} (${license})`, ...text].join('\n\n');
  });
  return `${(await Promise.all(texts)).join(`\n\n${'-'.repeat(80)}\n\n`)}\n`;
}

/** At once: the program may be running. */
async function replaceFile(path: string, contents: string | Uint8Array): Promise<void> {
  const aside = join(dirname(path), `.${basename(path)}.${process.pid}`);
  await writeFile(aside, contents);
  await rename(aside, path);
}
