import { defineConfig } from 'vitest/config';

/** Boot tests take minutes: two files at a time, because an emulated guest keeps one processor busy. */
export default defineConfig({
  test: {
    include: ['test/boot/**/*.boot.test.ts'],
    testTimeout: 1_800_000,
    hookTimeout: 600_000,
    maxWorkers: 2,
    globalSetup: ['test/boot/setup.ts'],
    pool: 'forks',
  },
});
