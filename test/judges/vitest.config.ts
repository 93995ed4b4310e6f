import { defineConfig } from 'vitest/config';

/** One worker: the judges are few, and their answers are compared one by one. */
export default defineConfig({
  test: {
    include: ['test/judges/**/*.judge.ts'],
    globalSetup: ['test/seeds.ts', 'test/setup.ts'],
    setupFiles: ['test/support/properties.ts'],
    testTimeout: 300_000,
    hookTimeout: 300_000,
    maxWorkers: 1,
    pool: 'forks',
  },
});
