import { spawn } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { COMPONENT_REPOSITORY, RELEASE_REPOSITORY } from '../demo/release.ts';
import { run, shell, stop, type Source } from './run.ts';

/**
 * What the users of the reference builder run, without its containers: skopeo copies every image into a
 * registry, genisoimage packs the registry's root, split makes parts of 3 GiB, xorriso writes base and
 * parts as the live ISO, and that is copied to its final name.
 *
 * @returns seconds
 */
export async function runReferenceChain(
  source: Source,
  options: { readonly directory: string; readonly base: string },
): Promise<{ readonly total: number; readonly steps: Record<string, number> }> {
  const { directory, base } = options;
  rmSync(directory, { recursive: true, force: true });
  const registry = await startDockerRegistry(directory);
  const steps: Record<string, number> = {};
  const time = async (name: string, work: () => Promise<unknown>): Promise<void> => {
    const started = performance.now();
    await work();
    steps[name] = (performance.now() - started) / 1000;
  };
  try {
    await time('mirror', () => mirror(source, registry.port));
  } finally {
    await registry.stop();
  }
  await time('data ISO', () =>
    shell(
      'genisoimage -quiet -J -joliet-long -D -R -V agentdata -allow-limited-size -iso-level 3 -o data.iso root',
      directory,
    ),
  );
  await time('split', () => shell('mkdir parts && split -b 3G data.iso parts/data.iso', directory));
  await time('live ISO', () =>
    shell(
      `xorriso -osirrox on -indev ${base} -extract / tree 2>/dev/null && mkdir tree/registry && mv parts/* tree/registry/ && ` +
        'xorriso -as mkisofs -quiet -R -V rhcos -iso-level 3 -o live.iso tree 2>/dev/null',
      directory,
    ),
  );
  await time('final copy', () => shell('cp live.iso final.iso && sync final.iso', directory));
  const total = Object.values(steps).reduce((a, b) => a + b, 0);
  rmSync(directory, { recursive: true, force: true });
  return { total, steps };
}

/** Debian's registry on loopback, with its data in `root` below a folder. */
export async function startDockerRegistry(
  directory: string,
): Promise<{ readonly port: number; readonly stop: () => Promise<void> }> {
  mkdirSync(`${directory}/root`, { recursive: true });
  const port = 20_000 + (process.pid % 10_000);
  const config = [
    'version: 0.1',
    'log: {level: error, accesslog: {disabled: true}}',
    `storage: {filesystem: {rootdirectory: ${directory}/root}}`,
    `http: {addr: "127.0.0.1:${port}"}`,
    '',
  ].join('\n');
  writeFileSync(`${directory}/registry.yml`, config);
  const child = spawn('docker-registry', ['serve', `${directory}/registry.yml`], {
    stdio: 'ignore',
  });
  await waitFor(`http://127.0.0.1:${port}/v2/`);
  return { port, stop: () => stop(child) };
}

/** Four images at a time, as oc-mirror does by default. */
async function mirror(source: Source, port: number): Promise<void> {
  const wanted = [
    { from: source.pullspec, to: 'openshift/release-images:release' },
    ...source.images.map(({ name, digest }) => ({
      from: `${source.host}/${COMPONENT_REPOSITORY}@${digest}`,
      to: `openshift/release:${name}`,
    })),
  ];
  if (!source.pullspec.includes(RELEASE_REPOSITORY)) throw new Error('no release to mirror');
  const copySome = async (): Promise<void> => {
    for (let image = wanted.shift(); image; image = wanted.shift()) {
      await run('skopeo', [
        'copy',
        '--quiet',
        '--preserve-digests',
        '--src-tls-verify=false',
        '--dest-tls-verify=false',
        `docker://${image.from}`,
        `docker://127.0.0.1:${port}/${image.to}`,
      ]);
    }
  };
  await Promise.all(Array.from({ length: 4 }, copySome));
}

async function waitFor(url: string): Promise<void> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const isUp = await fetch(url).then(
      (response) => response.ok,
      () => false,
    );
    if (isUp) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`${url} does not answer`);
}
