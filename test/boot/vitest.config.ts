import { basename } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { defineConfig } from 'vitest/config';

/** The files whose guests run longest: whatever starts last is waited for alone. */
const LONGEST = [
  'installed-host',
  'deployment-iso',
  'installation-iso',
  'live-iso',
  'network-boot',
];

class LongestFirst extends BaseSequencer {
  override sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rankOf = ({ moduleId }: TestSpecification): number => {
      const at = LONGEST.indexOf(basename(moduleId, '.boot.test.ts'));
      return at < 0 ? LONGEST.length : at;
    };
    return Promise.resolve(files.toSorted((one, other) => rankOf(one) - rankOf(other)));
  }
}

/** Boot tests take minutes: two files at a time, because an emulated guest keeps one processor busy. */
export default defineConfig({
  test: {
    include: ['test/boot/**/*.boot.test.ts'],
    testTimeout: 2_000_000,
    hookTimeout: 1_500_000,
    maxWorkers: 2,
    globalSetup: ['test/boot/setup.ts'],
    sequence: { sequencer: LongestFirst },
    pool: 'forks',
  },
});
