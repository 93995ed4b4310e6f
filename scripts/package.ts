import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runProcess } from '../src/base/process.ts';
import { buildProgram } from './build-program.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** The bundle contains the dependencies, so a host that installs it needs none. */
const ONLY_IN_CHECKOUT = ['dependencies', 'devDependencies', 'overrides', 'scripts'];

await buildProgram();
const stage = await mkdtemp(join(tmpdir(), 'sealift-package-'));
try {
  const text = await readFile(join(ROOT, 'package.json'), 'utf8');
  const manifest = JSON.parse(text) as { readonly files: readonly string[] };
  const contents = manifest.files.filter((name) => !name.startsWith('!'));
  for (const name of [...contents, 'LICENSE', 'README.md']) {
    await cp(join(ROOT, name), join(stage, name), { recursive: true });
  }
  const members = Object.entries(manifest).filter(([name]) => !ONLY_IN_CHECKOUT.includes(name));
  await writeFile(
    join(stage, 'package.json'),
    `${JSON.stringify(Object.fromEntries(members), null, 2)}\n`,
  );
  const { stdout } = await runProcess('npm', ['pack', '--silent', stage, ...process.argv.slice(2)]);
  console.log(stdout.trim());
} finally {
  await rm(stage, { recursive: true });
}
