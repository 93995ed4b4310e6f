import { ApiFailure } from '../openapi.ts';
import { BASE_PATH, identify, type App, type Service } from '../context.ts';

/* Owns the description of the ISO of a release: what is on it, before and after an image is ordered. */

/** Adds `sealiftGetContents`. */
export function addContentsRoute(app: App, service: Service): void {
  app.get(`${BASE_PATH}/sealift/contents`, async (exchange) => {
    await identify(service, exchange);
    const { version = '', cpu_architecture: architecture = 'x86_64' } = exchange.req.query();
    const release = await service.releases.find(version, architecture);
    if (!release) {
      throw new ApiFailure(404, `the store has no ISO of ${version} for ${architecture}`);
    }
    const { base, contents } = release;
    return exchange.json({
      openshift_version: release.version,
      cpu_architecture: release.architecture,
      size_bytes: base.size,
      has_agents: await service.images.hasAgents(release),
      ...(contents && {
        release_image: contents.reference,
        images: contents.images,
        operators: contents.operators,
      }),
    });
  });
}
