import type { Stage } from '../../engine/index.ts';
import { openImage, openLayers, fetchBlob, type ImageTools } from '../../openshift/images.ts';
import {
  type RegistryImageChoice,
  needsOpenssl,
  parseStartConfig,
  requireServerArchitecture,
  requireOpenssl,
  SERVER_IMAGE_FILES,
  usesDistributionEntrypoint,
} from '../../openshift/mirror/server.ts';
import { platformOf, type RpmArchitecture } from '../../openshift/release/bundle.ts';
import { listPresent, type Reference } from '../../registry/index.ts';

export type InspectRegistryImageInput = {
  readonly reference: Reference;
  /** True for component `docker-registry` of 4.21 or later: known to start as such. */
  readonly isComponent: boolean;
  readonly arch: RpmArchitecture;
  /** Version of the release on the hosts. */
  readonly version: string;
};

/**
 * Resolves the registry server's image to a digest and finds out how it is started. The layers of a component
 * are read for releases whose hosts need openssl from it; the layers of a configured image are always read.
 */
export const inspectRegistryImage: Stage<
  InspectRegistryImageInput,
  RegistryImageChoice,
  Pick<ImageTools, 'client' | 'cache'>
> = {
  name: 'inspect registry image',
  run: (input, tools, { signal, onProgress }) => inspect(input, { ...tools, signal, onProgress }),
};

async function inspect(
  { reference: named, isComponent, arch, version }: InspectRegistryImageInput,
  tools: ImageTools,
): Promise<RegistryImageChoice> {
  const platform = platformOf(arch);
  const { reference, image } = await openImage(tools, named, platform);
  const config = parseStartConfig(await fetchBlob(tools, reference, image.config), reference);
  requireServerArchitecture({ reference, config }, platform.architecture);
  if (isComponent && !needsOpenssl(version)) return { reference, useDistributionEntrypoint: true };
  const layers = openLayers(tools, reference, image.layers);
  const files = await listPresent(layers, SERVER_IMAGE_FILES, tools);
  requireOpenssl({ reference, files }, version);
  const useDistributionEntrypoint =
    isComponent || usesDistributionEntrypoint({ reference, config, files });
  return { reference, useDistributionEntrypoint };
}
