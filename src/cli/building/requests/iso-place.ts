import { dirname, join, resolve } from 'node:path';
import { UsageError } from '../../../base/errors.ts';
import { readConfigText } from '../../../config/load-config.ts';
import { listNamedPaths } from '../../../config/named-paths.ts';
import type { IsoPlace } from '../../../stages/pour/claim-iso.ts';
import { listAuthFiles } from '../../../registry/client/auth/credentials.ts';
import type { CliHost } from '../../host.ts';

/** What the commands that build an ISO have in common. */
export type PlaceOptions = {
  readonly output?: string;
  readonly workDir?: string;
  readonly force?: boolean;
};

/**
 * Where an ISO goes, and what must survive it.
 *
 * @param inputs of the command line, besides the configuration and what that names; undefined: none
 * @throws UsageError `usage.no-stream`, `usage.empty-path`, `output.not-a-file`
 */
export function readIsoPlace(
  { output: given, workDir, force = false }: PlaceOptions & { readonly output: string },
  from: { readonly config: string; readonly inputs: readonly (string | undefined)[] },
  { cwd, env }: CliHost,
): IsoPlace {
  const output = resolveOutput(cwd, given);
  const { config, inputs } = from;
  return {
    output,
    force,
    workDir: resolve(cwd, workDir ?? join(dirname(output), '.sealift')),
    inputs: [
      config,
      ...inputs.flatMap((path) => (path === undefined ? [] : [resolve(cwd, path)])),
      ...listNamedPaths(readConfigText(config), dirname(config)),
      ...listAuthFiles(env).map((path) => resolve(cwd, path)),
    ],
  };
}

function resolveOutput(cwd: string, output: string): string {
  if (output === '-') {
    throw new UsageError('usage.no-stream', 'an ISO cannot be written to standard output', {
      hint: 'name a file with --output; it is written out of order and resumable',
    });
  }
  if (output === '') {
    throw new UsageError('usage.empty-path', '--output is empty', { hint: 'name a file' });
  }
  if (!/(?:^|\/)\.{0,2}$/.test(output)) return resolve(cwd, output);
  throw new UsageError('output.not-a-file', `--output "${output}" names a directory`, {
    expected: 'the name of a file',
    found: output,
    hint: `name a file in it, such as ${join(output, 'medium.iso')}`,
  });
}
