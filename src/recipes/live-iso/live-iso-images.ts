import { join } from 'node:path';
import type { SelectedCatalog } from '../../openshift/catalog/selected-catalog.ts';
import { chooseRegistryImage } from '../../openshift/mirror/registry-image.ts';
import { checkPayloadSize } from '../../stages/check-max-size.ts';
import { planMirror } from '../../stages/plan-mirror.ts';
import { resolveRelease } from '../../stages/resolve-release.ts';
import { selectOperators } from '../../stages/select-operators.ts';
import type { BuildTools } from '../build-tools.ts';
import { graphOf } from './live-iso-ignition.ts';
import type { LiveIsoRequest } from './live-iso-request.ts';
import { reserveSpace } from './space.ts';

/** The release and every image by digest; `reserved` when there is room for them. */
export function selectImages(request: LiveIsoRequest, tools: BuildTools) {
  const { config } = request;
  const { engine, client, cache, http, tls } = tools;
  const arch = config.ocpRelease.cpuArchitecture;
  const release = engine.stage({
    name: 'resolve release',
    inputs: { ...config.ocpRelease, arch },
    run: (input, { signal, onProgress }) =>
      resolveRelease(input, { client, cache, http, signal, onProgress, ...graphOf(request, tls) }),
  });
  const registryImage = release.then((release) =>
    chooseRegistryImage({ uri: config.imageRegistry.uri, release }),
  );
  registryImage.catch(() => undefined); // the stages that wait for it tell
  const catalogs = selectCatalogs(request, tools);
  const plan = engine.stage({
    name: 'plan mirror',
    inputs: {
      release,
      catalogs,
      additionalImages: config.additionalImages,
      blockedImages: config.blockedImages.map(({ name }) => name),
      allArchitectures: config.build.allArchitectures,
      arch,
      includeSignatures: true,
      noSignaturesFrom: config.disableSigstoreRegistries,
      registryImage: registryImage.then(({ reference }) => reference),
    },
    run: (input, { signal, onProgress }) =>
      planMirror(input, {
        ...{ client, cache, signal },
        onProgress: (done, total) => {
          onProgress(0, undefined, `${done} of ${total} images`);
        },
      }),
  });
  const reserved = engine.stage({
    name: 'check space',
    inputs: { plan },
    run: ({ plan }) => {
      checkPayloadSize(plan, config.build.maxSize);
      return reserveSpace(plan, request, cache);
    },
  });
  return { release, registryImage, catalogs, plan, reserved };
}

/** What is kept of every catalog, and the images that stand for them. */
function selectCatalogs(
  { config, workDir }: LiveIsoRequest,
  { engine, client, cache }: BuildTools,
): Promise<SelectedCatalog[]> {
  return engine.stage({
    name: 'select operators',
    inputs: {
      catalogs: config.operators,
      arch: config.ocpRelease.cpuArchitecture,
      allArchitectures: config.build.allArchitectures,
      directory: join(workDir, 'cache', 'catalogs'),
    },
    run: (input, { signal, onProgress, warn }) =>
      selectOperators(input, { client, cache, signal, onProgress, warn }),
  });
}
