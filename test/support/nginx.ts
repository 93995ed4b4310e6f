import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

export type Nginx = {
  /** SIGKILL: connections break. */
  readonly kill: () => Promise<void>;
  /** SIGSTOP: it takes connections and answers nothing. */
  readonly pause: () => void;
  readonly resume: () => void;
};

/**
 * Debian's nginx by plain HTTP on loopback. It serves `<directory>/files`, and answers the ping of registries:
 * a blob is a file `v2/<repository>/blobs/<digest>`.
 *
 * @param more directives for the files: `max_ranges 0;`
 */
export async function startNginx(directory: string, port: number, more = ''): Promise<Nginx> {
  await mkdir(join(directory, 'files'), { recursive: true });
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (kind) => `${kind}_temp_path ${directory}/${kind};`,
  );
  const lines = [
    'daemon off; master_process off; error_log stderr error;',
    `pid ${directory}/nginx.pid;`,
    'events {}',
    `http { access_log off; ${temporary.join(' ')}`,
    `server { listen 127.0.0.1:${port}; root ${directory}/files;`,
    "location = /v2/ { return 200 '{}'; }",
    `location / { ${more} } } }`,
  ];
  await writeFile(join(directory, 'nginx.conf'), lines.join('\n'));
  const child = spawn('nginx', ['-p', directory, '-c', join(directory, 'nginx.conf')], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { PATH: `${process.env['PATH'] ?? ''}:/usr/sbin` },
  });
  const closed = once(child, 'close');
  while (!(await answers(port))) {
    if (child.exitCode !== null) throw new Error(`nginx ended with ${child.exitCode}`);
    await sleep(20);
  }
  return {
    async kill() {
      child.kill('SIGKILL');
      await closed;
    },
    pause: () => child.kill('SIGSTOP'),
    resume: () => child.kill('SIGCONT'),
  };
}

const answers = (port: number): Promise<boolean> =>
  fetch(`http://127.0.0.1:${port}/v2/`).then(
    ({ ok }) => ok,
    () => false,
  );
