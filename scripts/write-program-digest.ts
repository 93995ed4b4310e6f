import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { digestProgram } from '../src/recipes/program-digest.ts';

/** The last step of the build: what the built program answers when it is asked which program it is. */
const root = fileURLToPath(new URL('..', import.meta.url));
const dist = join(root, 'dist');
const digest = await digestProgram(root, dist);
await writeFile(join(dist, 'program-digest.json'), `${JSON.stringify({ digest })}\n`);
