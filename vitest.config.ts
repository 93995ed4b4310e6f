import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/boot/**'],
    testTimeout: 180_000,
    hookTimeout: 180_000,
    globalSetup: ['test/setup.ts'],
    setupFiles: ['test/support/properties.ts'],
    pool: 'forks',
    // A third of a test's time is waiting for other programs: a worker more than processors keeps all busy.
    maxWorkers: availableParallelism() + 1,
  },
});
