import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setup as buildProgram } from '../setup.ts';
import { buildBaseIso } from './base-iso.ts';
import { BOOT_CACHE, hasBootHost } from './boot-host.ts';
import { RUN_FOLDER } from './live-medium.ts';

/** Runs once before all boot tests, which may then take the program and the base ISO at the same time. */
export async function setup(): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), 'boot-run-'));
  process.env[RUN_FOLDER] = folder;
  await buildProgram();
  if (hasBootHost()) await buildBaseIso(BOOT_CACHE);
  return () => rm(folder, { recursive: true, force: true });
}
