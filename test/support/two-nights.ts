import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { LiveWorld, Outcome } from './live-iso.ts';

/** Runs the program, which must not fail. */
export async function expectDone(world: LiveWorld, ...args: readonly string[]): Promise<Outcome> {
  const outcome = await world.run(...args);
  const { exitCode, stderr } = outcome;
  expect([args, exitCode, stderr]).toEqual([args, 0, expect.not.stringContaining('error')]);
  return outcome;
}

/**
 * `monday.iso`, and `tuesday.iso` with other Ignition and one more kernel argument.
 *
 * @param options.replaces whether tuesday's was built over monday's, so that places stay
 */
export async function buildTwoNights(
  world: LiveWorld,
  { replaces }: { readonly replaces: boolean },
): Promise<void> {
  const at = (name: string): string => join(world.directory, name);
  const build = (output: string): Promise<Outcome> =>
    expectDone(world, 'build', '--output', output, '--base-iso', 'test.iso');
  await world.writeConfig();
  await build('monday.iso');
  if (replaces) await copyFile(at('monday.iso'), at('tuesday.iso'));
  await world.writeConfig('  kernelArguments: [debug]', 'stopLocalRegistry: true');
  await build('tuesday.iso');
}
