import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createLiveWorld, type LiveWorld } from './live-iso.ts';
import { buildLayeredImage } from './release.ts';

/** A world whose configuration names one additional image by a tag, with a manifest next to it. */
export type ToolWorld = {
  readonly world: LiveWorld;
  readonly at: (name: string) => string;
  /** Gives the tag an image with this content. */
  readonly addTool: (content: string) => Promise<void>;
  /** Writes the configuration again, with these lines below `build`. */
  readonly writeConfig: (...lines: readonly string[]) => Promise<void>;
  /** Writes the manifest next to the configuration again, by the name of its object. */
  readonly writeManifest: (name: string) => Promise<void>;
};

export async function createToolWorld(): Promise<ToolWorld> {
  const world = await createLiveWorld();
  const { registry, directory } = world;
  const at = (name: string): string => join(directory, name);
  const made: ToolWorld = {
    world,
    at,
    async addTool(content) {
      registry.add('team/tool', await buildLayeredImage([[['usr/bin/tool', content]]]), '1');
    },
    writeConfig: (...lines) =>
      world.writeConfig(...lines, `additionalImages: [{name: "${registry.host}/team/tool:1"}]`),
    writeManifest: (name) =>
      writeFile(
        at('openshift/a.yaml'),
        `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ${name}, namespace: default}\n`,
      ),
  };
  await made.addTool('first');
  await made.writeConfig();
  await mkdir(at('openshift'));
  await made.writeManifest('a');
  return made;
}
