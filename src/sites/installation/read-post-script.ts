import { dirname, join } from 'node:path';
import { ConfigError } from '../../base/errors.ts';
import { readFileIfPresent } from '../../base/files.ts';

/**
 * post.sh beside a configuration, byte for byte; undefined when there is none.
 *
 * @throws ConfigError `installation.post-script` when it cannot be read
 */
export async function readPostScript(config: string): Promise<Uint8Array | undefined> {
  const path = join(dirname(config), 'post.sh');
  try {
    return await readFileIfPresent(path);
  } catch (cause) {
    throw new ConfigError('installation.post-script', `failed to load the post.sh file: ${path}`, {
      cause,
    });
  }
}
