import { defineConfig } from 'vitest/config';

/** Boot tests take minutes and one machine at a time: one file after the other, no retries. */
export default defineConfig({
  test: {
    include: ['test/boot/**/*.boot.test.ts'],
    testTimeout: 600_000,
    hookTimeout: 600_000,
    fileParallelism: false,
    pool: 'forks',
  },
});
