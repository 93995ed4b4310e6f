import { explainImages, type ExplainableImage, type Explanation } from '../media/explain.ts';
import type { MirrorPlan, PlannedImage } from '../openshift/mirror/plan.ts';
import { formatReference } from '../registry/reference.ts';
import type { BuildTools } from './build-tools.ts';
import type { LiveIsoRequest } from './live-iso/live-iso-request.ts';
import { selectImages } from './live-iso/live-iso-images.ts';

/**
 * Everything of the plan that the words mean; see `explainImages`.
 *
 * @throws UsageError `why.nothing`
 */
export async function explainImage(
  what: string,
  request: LiveIsoRequest,
  tools: BuildTools,
): Promise<Explanation> {
  const { plan, reserved } = selectImages(request, tools);
  reserved.catch(() => undefined); // what does not fit is explained, too
  return explain(what, await plan);
}

export function explain(what: string, plan: MirrorPlan): Explanation {
  const all = plan.registryImage ? [...plan.images, plan.registryImage] : plan.images;
  return explainImages(what, all.map(toExplainable), 'the plan');
}

function toExplainable(image: PlannedImage): ExplainableImage {
  const { name, origin, source, manifests, blobs, destination, neededBy } = image;
  const reference = formatReference(source);
  const { repository, tags } = destination;
  const names = [name, formatReference(origin), reference, repository];
  return { name, reference, repository, tags, names, manifests, blobs, neededBy };
}
