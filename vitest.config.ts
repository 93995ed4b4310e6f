import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { listProjects, type Project } from './test/projects.ts';

const files = listProjects();

const project = (
  name: Project,
  globalSetup: readonly string[],
  setupFiles: readonly string[] = [],
) => ({
  extends: true as const,
  test: {
    name,
    include: [...files[name]],
    globalSetup: ['test/seeds.ts', ...globalSetup],
    setupFiles: ['test/support/properties.ts', 'test/support/cpu.ts', ...setupFiles],
  },
});

export default defineConfig({
  test: {
    testTimeout: 180_000,
    hookTimeout: 180_000,
    pool: 'forks',
    // Much is short-lived: with more room for it, a tenth of the processor time is saved.
    execArgv: ['--min-semi-space-size=32', '--max-semi-space-size=64'],
    // Files share their workers, and with them all modules: loading those took a third of the time.
    isolate: false,
    reporters: ['default', './test/support/slowest-files.ts', './test/support/unhandled-errors.ts'],
    // A third of a test's time is waiting for other programs: a worker more than processors keeps all busy.
    maxWorkers: availableParallelism() + 1,
    projects: [
      project('unit', [], ['test/support/no-programs.ts']),
      project('programs', ['test/setup.ts']),
      project('whole', ['test/setup.ts']),
    ],
  },
});
