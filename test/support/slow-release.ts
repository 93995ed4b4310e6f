import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeBaseIso } from '../../demo/base-iso.ts';
import { createBlobFactory } from '../../demo/payload.ts';
import { SIGNATURE_LINES } from '../../demo/release-signer.ts';
import { buildImage, makeCoreComponents, publishRelease } from '../../demo/release.ts';
import { type SourceRegistry, startSourceRegistry } from '../../demo/source-registry.ts';

const MIB = 1024 * 1024;

export type SlowRelease = {
  /** Folder with a configuration and the base ISO, in which a build runs. */
  readonly directory: string;
  readonly registry: SourceRegistry;
  readonly close: () => Promise<void>;
};

/** A release of large blobs in a registry that serves them slowly, so that a build can be interrupted on the way. */
export async function startSlowRelease({
  blobs,
  blobSize,
  lanes,
}: Readonly<Record<'blobs' | 'blobSize' | 'lanes', number>>): Promise<SlowRelease> {
  const directory = await mkdtemp(join(tmpdir(), 'sealift-slow-'));
  const registry = await startSourceRegistry({ pauseMs: 8 });
  const base = join(directory, 'base.iso');
  await makeBaseIso(base, MIB);
  const components = await makeCoreComponents(await readFile(base), []);
  const makeBlob = createBlobFactory();
  for (let index = 0; index < blobs; index++) {
    components.set(`c${index}`, buildImage([makeBlob(index, blobSize + index)]));
  }
  const pullspec = await publishRelease(registry, { version: '4.21.0', components });
  registry.signer.write(directory);
  await writeFile(
    join(directory, 'appliance-config.yaml'),
    [
      ...['apiVersion: v1beta1', 'kind: ApplianceConfig', 'ocpRelease:', '  version: "4.21.0"'],
      `  url: ${pullspec}`,
      `pullSecret: '{"auths":{"${registry.host}":{"auth":"dTpw"}}}'`,
      ...['build:', '  ignition: embedded', '  baseIso: base.iso', `  concurrency: ${lanes}`],
      ...[...SIGNATURE_LINES, ''],
    ].join('\n'),
  );
  return {
    directory,
    registry,
    async close() {
      await registry.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
