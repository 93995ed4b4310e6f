import { spawn, type ChildProcess } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runProcess } from '../../src/base/process.ts';
import { freePort } from './local-http.ts';

/**
 * Starts Debian's docker-registry on loopback for the user `puller` with password `hush`. The directory
 * has `server.pem` and `server.key`, a certificate for localhost, and gets `store`. Does not wait.
 */
export async function startPasswordRegistry(
  directory: string,
): Promise<{ readonly host: string; readonly process: ChildProcess }> {
  const at = (name: string): string => join(directory, name);
  const { stdout } = await runProcess('htpasswd', ['-nbB', 'puller', 'hush']);
  await writeFile(at('htpasswd'), stdout.trim());
  const port = await freePort();
  const config = {
    version: '0.1',
    log: { level: 'error' },
    storage: { filesystem: { rootdirectory: at('store') } },
    http: {
      addr: `127.0.0.1:${port}`,
      tls: { certificate: at('server.pem'), key: at('server.key') },
    },
    auth: { htpasswd: { realm: 'test', path: at('htpasswd') } },
  };
  await writeFile(at('config.yml'), JSON.stringify(config));
  const process = spawn('docker-registry', ['serve', at('config.yml')], { stdio: 'ignore' });
  return { host: `localhost:${port}`, process };
}
