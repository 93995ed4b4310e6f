import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/boot/**'],
    testTimeout: 180_000,
    hookTimeout: 180_000,
    globalSetup: ['test/setup.ts'],
    pool: 'forks',
    // Much of a test's time is waiting for other programs: one worker would leave a processor idle.
    maxWorkers: Math.max(2, availableParallelism() - 1),
  },
});
