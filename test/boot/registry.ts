import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { Digest } from '../../src/base/digest.ts';
import { runProcess } from '../../src/base/process.ts';
import { writeOciLayout, type ImageRecipe } from './images.ts';

export type Registry = {
  /** `127.0.0.1:PORT`, plain HTTP. */
  readonly host: string;
  /** Root of the filesystem driver; `docker/registry/v2` is below it. */
  readonly directory: string;
  readonly stop: () => Promise<void>;
};

const DOCKER_REGISTRY = 'docker-registry';

/** Starts Debian's docker-registry on loopback, with its data and configuration under `work`. */
export async function startRegistry(work: string): Promise<Registry> {
  const directory = join(work, 'registry');
  await mkdir(directory, { recursive: true });
  const host = `127.0.0.1:${await findFreePort()}`;
  const config = join(work, 'registry.yml');
  await writeFile(
    config,
    `version: 0.1
log: {level: error, accesslog: {disabled: true}}
storage: {filesystem: {rootdirectory: ${directory}}}
http: {addr: "${host}"}
`,
  );
  const server = spawn(DOCKER_REGISTRY, ['serve', config], { stdio: 'ignore' });
  const ended = once(server, 'exit');
  const stop = async (): Promise<void> => {
    server.kill('SIGTERM');
    await ended;
  };
  try {
    await waitUntilServed(host);
  } catch (error) {
    await stop();
    throw error;
  }
  return { host, directory, stop };
}

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no free TCP port');
  return address.port;
}

async function waitUntilServed(host: string): Promise<void> {
  for (let tries = 0; tries < 100; tries += 1) {
    const response = await fetch(`http://${host}/v2/`).catch(() => undefined);
    if (response?.ok) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`docker-registry on ${host} does not answer after 10 s`);
}

export type PushOptions = {
  readonly registry: Registry;
  /** Where the image's layout is written; shared by all images of one test. */
  readonly work: string;
  /** Repository and tag on the registry, `openshift/release:cli`. */
  readonly target: string;
};

/** Makes an image and pushes it with its manifest bytes unchanged. Returns its digest. */
export async function pushImage(recipe: ImageRecipe, options: PushOptions): Promise<Digest> {
  const layout = join(options.work, 'layouts', options.target.replaceAll(/[/:]/g, '_'));
  const digest = await writeOciLayout(layout, recipe);
  await runProcess('skopeo', [
    ...['copy', '--quiet', '--insecure-policy', '--preserve-digests', '--dest-tls-verify=false'],
    ...[`oci:${layout}`, `docker://${options.registry.host}/${options.target}`],
  ]);
  return digest;
}
