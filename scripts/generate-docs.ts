import { writeFileSync } from 'node:fs';
import { DOCUMENTS } from './documents.ts';

for (const { path, render } of DOCUMENTS) writeFileSync(path, render());
