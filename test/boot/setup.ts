import { buildBaseIso } from './base-iso.ts';
import { BOOT_CACHE, hasBootHost } from './boot-host.ts';

/** Runs once before all boot tests, which may then take the base ISO at the same time. */
export async function setup(): Promise<void> {
  if (hasBootHost()) await buildBaseIso(BOOT_CACHE);
}
