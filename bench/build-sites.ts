/*
 * Makes the configuration ISOs of a table with a template: arguments are table, template and output
 * directory. Keys and the hash of the password were made before and are handed out again and again,
 * so that what is measured is everything else. Prints one JSON line: seconds, those of CPU in all
 * threads, sites, and bytes of an ISO beyond what is in its files. A process of its own, bundled as
 * program, so that its memory is that of a build alone.
 */
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { createRedaction } from '../src/base/text/redact.ts';
import { digestOf } from '../src/base/digest.ts';
import { createKeySource, type KeySource } from '../src/sites/identity/keys.ts';
import { buildConfigIsos } from '../src/stages/config-isos.ts';
import { readConfigIso } from '../src/sites/config-iso.ts';

const KEYS = 60;

const [sites = '', template = '', out = ''] = process.argv.slice(2);
const source = createKeySource();
const pairs = await Promise.all(Array.from({ length: KEYS }, () => source.next()));
const hash = await source.hashPassword('bench', new Uint8Array(16));
await source.close();
let next = 0;
function nextPair(): (typeof pairs)[number] {
  const pair = pairs[next++ % KEYS];
  if (!pair) throw new Error('there are no keys');
  return pair;
}
const keys: KeySource = {
  next: () => Promise.resolve(nextPair()),
  hashPassword: () => Promise.resolve(hash),
  close: () => Promise.resolve(),
};

const before = process.cpuUsage();
const started = performance.now();
const report = await buildConfigIsos(
  {
    sites,
    template,
    out,
    cwd: out,
    dropIn: false,
    rotate: false,
    jobs: availableParallelism(),
    epoch: Math.floor(Date.now() / 1000),
    redaction: createRedaction(),
  },
  {
    keys,
    program: digestOf('bench'), // the built program has its digest at hand
    emit: () => undefined,
    now: () => performance.now(),
    signal: new AbortController().signal,
  },
);
const seconds = (performance.now() - started) / 1000;
const { user, system } = process.cpuUsage(before);
const problem = [...report.findings, ...report.failed.flatMap(({ findings }) => findings)][0];
if (problem) throw new Error(`a site was not built: ${JSON.stringify(problem)}`);
const iso = await readConfigIso(join(out, report.sites[0]?.iso ?? ''));
const content = iso.entries.reduce((sum, { size }) => sum + size, 0);
process.stdout.write(
  JSON.stringify({
    seconds,
    cpuSeconds: (user + system) / 1e6,
    sites: report.made,
    overhead: iso.size - content,
    isoSize: iso.size,
  }),
);
