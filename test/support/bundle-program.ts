import { copyFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

type Parts = {
  /** Text of the program, with imports as from here; default: that of `name.ts` beside this file. */
  readonly source?: string;
  /** From `src/`; the program starts threads from them. */
  readonly workers?: readonly string[];
};

/**
 * A program of the tests as one file, which starts without a compiler. It lies as deep as a room of `src`, from where
 * the files of the package are found.
 */
export async function bundleProgram(
  name: string,
  { source, workers = [] }: Parts = {},
): Promise<string> {
  const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
  const outfile = at(`../built/${name}.mjs`);
  await build({
    ...(source === undefined
      ? { entryPoints: [at(`${name}.ts`)] }
      : { stdin: { contents: source, resolveDir: at('.') } }),
    ...{ outfile, bundle: true, platform: 'node', format: 'esm', packages: 'external' },
  });
  for (const worker of workers) {
    await copyFile(at(`../../src/${worker}`), at(`../built/${basename(worker)}`));
  }
  return outfile;
}
