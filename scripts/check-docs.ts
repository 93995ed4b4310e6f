import { readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { DOCUMENTS } from './documents.ts';

const stale = DOCUMENTS.filter(({ path, render }) => readFileSync(path, 'utf8') !== render());
for (const { path } of stale) {
  console.error(`${relative(process.cwd(), path)} is out of step with the program`);
}
if (stale.length > 0) {
  console.error('hint: run npx tsx scripts/generate-docs.ts and commit what it writes');
  process.exitCode = 1;
}
