import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { readLiveSystem } from '../../src/media/config-image.ts';
import { readIndex } from '../../src/media/media-index.ts';
import { useMedium } from '../../src/media/open.ts';
import {
  configImageMembers,
  IMAGE_SET_PATH,
  makeConfigImage,
  type Members,
  packConfigArchive,
  unconfiguredIgnition,
} from './config-image.ts';
import { IMAGE_SET, makeInstaller } from './installer-script.ts';
import { createLiveWorld, type LiveWorld } from './live-iso.ts';

/** What an installer writes for media that load configuration images. */
function formatLoading(): string {
  const config = unconfiguredIgnition();
  const files = config.storage?.files?.map((file) =>
    file.path === IMAGE_SET_PATH ? { ...file, contents: { source: IMAGE_SET } } : file,
  );
  return JSON.stringify({ ...config, storage: { files } });
}

/** A folder with `live.iso`, whose live system loads configuration images. */
export type SiteWorld = LiveWorld & {
  readonly at: (name: string) => string;
  /** Fails unless the command succeeds; its output, then its messages. */
  readonly sealift: (...args: string[]) => Promise<string>;
  /** Members of an image that `live.iso` takes. */
  readonly members: Members;
  /** @returns the name of an image, in the folder */
  readonly writeImage: (name: string, members: Members) => Promise<string>;
  /** Place of the area on `live.iso`. */
  readonly area: { readonly offset: number; readonly size: number };
};

export async function createSiteWorld(): Promise<SiteWorld> {
  const installer = makeInstaller('4.21.3', formatLoading());
  const world = await createLiveWorld({ installer });
  const { directory } = world;
  const at = (name: string): string => join(directory, name);
  const sealift = async (...args: string[]): Promise<string> => {
    const { exitCode, stdout, stderr } = await world.run(...args);
    expect(exitCode, `${args.join(' ')}\n${stdout}${stderr}`).toBe(0);
    return stdout + stderr;
  };
  await world.writeConfig();
  const config = await readFile(at('appliance-config.yaml'), 'utf8');
  const loading = config
    .replace('enableInteractiveFlow: true', 'enableInteractiveFlow: false')
    .replace('ignition: embedded', 'ignition: installer');
  await writeFile(at('appliance-config.yaml'), loading);
  await sealift('build', '--base-iso', 'test.iso', '--output', 'live.iso');
  const { imageSet, area } = await useMedium(at('live.iso'), async (iso) => ({
    imageSet: (await readLiveSystem(iso)).clusterImageSet,
    area: (await readIndex(iso))?.mutable?.find(({ kind }) => kind === 'config-image'),
  }));
  if (!imageSet || !area) throw new Error('the medium loads no configuration images');
  const members = {
    ...configImageMembers(Buffer.from(imageSet).toString()),
    '/etc/assisted/manifests/cluster-deployment.yaml':
      'spec:\n  baseDomain: example.com\n  clusterName: edge\n',
  };
  return {
    ...world,
    at,
    sealift,
    members,
    area,
    async writeImage(name, content) {
      const archive = await packConfigArchive(directory, content);
      await makeConfigImage(directory, archive, { name });
      return name;
    },
  };
}
