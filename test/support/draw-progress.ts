import { createRedaction } from '../../src/base/text/redact.ts';
import { createProgress } from '../../src/cli/terminal/progress.ts';

/**
 * Draws a build on the terminal of stderr: a base ISO, then an ISO of which a part is copied fast and
 * the rest comes over a slow network. Arguments: milliseconds between two events, and of each half.
 */
const [interval = 10, half = 1500] = process.argv.slice(2).map(Number);
const MIB = 2 ** 20;

const view = createProgress(
  {
    stdout: process.stdout,
    stderr: process.stderr,
    env: {},
    cwd: '/',
    redaction: createRedaction(),
    isTTY: true,
    signal: new AbortController().signal,
    now: () => performance.now(),
  },
  'auto',
);

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, interval));

/** Calls for each event with the share of the time that has passed; the last is 1. */
async function during(tell: (share: number) => void): Promise<void> {
  const started = performance.now();
  for (let share = 0; share < 1;) {
    share = Math.min(1, (performance.now() - started) / half);
    tell(share);
    await pause();
  }
}

view.listener({ type: 'stage-started', stage: 'fetch base ISO' });
await during((share) => {
  const bytes = Math.floor(share * 900 * MIB);
  view.listener({ type: 'stage-progress', stage: 'fetch base ISO', bytes, total: 900 * MIB });
});
view.listener({ type: 'stage-done', stage: 'fetch base ISO', milliseconds: half });
view.listener({ type: 'stage-started', stage: 'pour ISO' });
await during((share) => {
  view.listener({
    type: 'stage-progress',
    stage: 'pour ISO',
    bytes: Math.floor((20 + share * 20) * 1024 * MIB),
    total: 40 * 1024 * MIB,
    network: { bytes: Math.floor(share * 10 * 1024 * MIB), total: 10 * 1024 * MIB },
  });
});
await pause(); // all bytes are there, and the digest is not
view.listener({ type: 'stage-done', stage: 'pour ISO', milliseconds: half });
view.listener({ type: 'warning', message: 'a warning at the end' });
view.close();
