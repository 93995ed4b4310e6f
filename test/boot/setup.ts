import { buildProgram } from '../../scripts/bundle.ts';
import { buildBaseIso } from './base-iso.ts';
import { BOOT_CACHE, hasBootHost } from './boot-host.ts';

/** Runs once before all boot tests, which may then take the program and the base ISO at the same time. */
export async function setup(): Promise<void> {
  await buildProgram();
  if (hasBootHost()) await buildBaseIso(BOOT_CACHE);
}
