import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/*
 * Owns the rule that puts a test file into one of three projects, by what it imports, itself or through `test/`,
 * `demo/`, `bench/` and `scripts/`:
 *
 * - `whole`: the built program in `dist/`, or a medium that is built from a release
 * - `programs`: other programs, and processes of any kind
 * - `unit`: neither; `test/support/no-programs.ts` holds it to that while it runs
 */

export type Project = 'unit' | 'programs' | 'whole';

const WHOLE =
  /^(?:dist\/|test\/e2e\/|demo\/world\.ts|scripts\/|test\/support\/(?:child|config-iso-world|live-iso|run-line)\.ts)/;
const PROGRAMS = /^(?:node:child_process|src\/base\/process\.ts|test\/support\/tools\.ts)$/;

/** These start processes too, but only through `src/`. */
const THROUGH_SRC =
  /^test\/(?:nmstate\/ask-nmstate|registry\/client\/credentials|service\/(?:audit\/syslog|networks|workers\/pool)|stages\/3-render\/(?:installer-limit|render-unconfigured))\.test\.ts$/;

const ROOT = join(import.meta.dirname, '..');

/** @returns paths of the test files of each project, from the root of the repository */
export function listProjects(): Readonly<Record<Project, readonly string[]>> {
  const imports = new Map<string, readonly string[]>();
  const files = readdirSync(join(ROOT, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts') && !name.startsWith('boot/'))
    .map((name) => `test/${name}`)
    .sort();
  const projects: Record<Project, string[]> = { unit: [], programs: [], whole: [] };
  for (const file of files) projects[projectOf(reach(file, imports))].push(file);
  return projects;
}

function projectOf(reached: ReadonlySet<string>): Project {
  const names = [...reached];
  if (names.some((name) => WHOLE.test(name))) return 'whole';
  return names.some((name) => PROGRAMS.test(name) || THROUGH_SRC.test(name)) ? 'programs' : 'unit';
}

/** A file with all that it imports; of `src` only what it imports itself. */
function reach(file: string, imports: Map<string, readonly string[]>): ReadonlySet<string> {
  const reached = new Set([file]);
  for (const one of reached) {
    if (!/^(?:bench|demo|scripts|test)\/.*\.[cm]?[jt]s$/.test(one)) continue;
    const known = imports.get(one) ?? listImports(one);
    imports.set(one, known);
    for (const name of known) reached.add(name);
  }
  return reached;
}

/** Imports of values. */
const IMPORT = /^(?:import|export) (?!type )(?:[^;']*? from )?'([^']+)'|import\('([^']+)'\)/gm;

function listImports(file: string): readonly string[] {
  const text = readFileSync(join(ROOT, file), 'utf8');
  const names = [...text.matchAll(IMPORT)].map(([, from, dynamic]) => from ?? dynamic ?? '');
  const paths = names.map((name) => (name.startsWith('.') ? join(dirname(file), name) : name));
  return /dist\Wcli/.test(text) ? ['dist/', ...paths] : paths;
}
