import { lstatSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { checkOutputPlace, claimOutput } from '../../base/claim-output.ts';
import { UsageError } from '../../base/errors.ts';
import { unlessAbsent } from '../../base/files.ts';
import { readRegularFile } from '../../base/open-file.ts';
import { listInputs, type ConfigIsosRequest } from './config-isos-request.ts';
import { isListing, listFileOf } from './site-list-file.ts';
import { stateDirectoryOf } from '../../sites/state/site-places.ts';
import { isOurReadme, isStateFile, readmeOf } from '../../sites/state/state-directory.ts';

/**
 * Decides, before anything is made, whether the list of all sites and the state may be written: each
 * may be absent, empty, or what a build made; anything else only with `force`.
 *
 * @throws what `claimOutput` throws
 */
export async function claimFolder(request: ConfigIsosRequest): Promise<void> {
  const { out, dropIn, force = false } = request;
  const inputs = listInputs(request);
  const state = stateDirectoryOf(out);
  if (unlessAbsent(() => lstatSync(state))?.isSymbolicLink()) {
    await checkOutputPlace({ path: state });
  }
  await claimOutput(
    { path: readmeOf(state), inputs },
    {
      ...{ force, expected: 'that of an earlier build' },
      isReplaceable: () => isOurReadme(state),
    },
  );
  if (!force) await refuseForeignState(state);
  if (dropIn) return;
  const path = listFileOf(out);
  await claimOutput(
    { path, inputs },
    { force, expected: 'the list of an earlier build', isReplaceable: () => isListing(path) },
  );
}

/** A state whose README was lost is known by the names of its files. */
async function refuseForeignState(state: string): Promise<void> {
  if ((await readRegularFile(readmeOf(state))) !== undefined) return;
  const names = unlessAbsent(() => lstatSync(state)) ? await readdir(state) : [];
  const foreign = names.find((name) => !isStateFile(name));
  if (foreign === undefined) return;
  throw new UsageError('output.exists', `"${state}" exists and is not the state of a build`, {
    ...{ expected: 'nothing, an empty folder, or the state of an earlier build' },
    ...{ found: join(state, foreign) },
    hint: 'name another folder with --out, or use this one with --force: what is in it stays',
  });
}
