import type { SiteInput } from '../site.ts';
import { convertResources } from './convert.ts';
import { findResources } from './find.ts';
import { convertImageInstall, IMAGE_INSTALL } from './image-cluster-install.ts';
import type { SiteFlow } from './shape.ts';

/** The files of a site that has resources of any kind in place of them. */
export function convertAnyResources(input: SiteInput, asked: SiteFlow | undefined): SiteInput {
  const resources = findResources(input.files);
  const isInstance = resources.some(({ kind }) => kind === 'ClusterInstance');
  const installs = resources.filter(({ kind }) => kind === IMAGE_INSTALL);
  return isInstance || installs.length === 0
    ? convertResources(input, asked)
    : convertImageInstall(input, { resources, installs, asked });
}
