import { ConfigError } from '../base/errors.ts';
import { withoutUndefined } from '../base/lists.ts';
import { CONFIGURE_BY_OPTION, type RegistryImageChoice } from '../openshift/mirror/server.ts';
import { archNames, type RpmArchitecture } from '../openshift/release/bundle.ts';
import type { Release } from '../openshift/release/release.ts';
import { roomOf } from '../outputs/place.ts';
import { parseReference } from '../registry/index.ts';
import type { InstallationConfig } from '../sites/installation-rules.ts';
import { inspectRegistryImage } from './1-resolve/inspect-registry-image.ts';
import { checkSpace } from './2-select/check-space.ts';
import { planMirror, readPrecacheList } from './2-select/plan-mirror.ts';
import { resolveVerified, selectRegistryImage } from './payload.ts';
import type { EmbeddedImages, InstallationIsoRequest } from './request.ts';
import type { BuildTools } from './tools.ts';

/* The images that an installation ISO carries besides its configuration. */

/** The release payload that the request names, verified. */
export async function resolveNamedRelease(
  { release: url, config, signatures }: InstallationIsoRequest,
  tools: BuildTools,
): Promise<Release | undefined> {
  if (url === undefined) return undefined;
  const arch = architectureOf(config);
  const wanted = { url, arch, version: ANY_VERSION, channel: '' };
  return resolveVerified(wanted, tools, { signatures });
}

/** Placeholder: `X.Y` is only used to ask the update graph, which is not consulted for a pullspec. */
const ANY_VERSION = '4.0';

/** Plans the seed, the release and all other carried images, by digest, when there is room for them. */
export async function planEmbedded(
  request: InstallationIsoRequest,
  tools: BuildTools,
  release: Release | undefined,
): Promise<EmbeddedImages | undefined> {
  const { config, embed } = request;
  const isWanted = embed.seed || embed.release || embed.precached || embed.images.length > 0;
  if (!isWanted) return undefined;
  const server = await chooseServer(request, tools, release);
  const { engine } = tools;
  const arch = architectureOf(config);
  const wanted = [
    ...(embed.seed ? [config.seedImage] : []),
    ...(embed.precached
      ? await engine.run(readPrecacheList, { seedImage: config.seedImage, arch })
      : []),
    ...embed.images,
  ];
  const plan = await engine.run(planMirror, {
    ...EVERYTHING,
    additionalImages: [...new Set(wanted)].map((name) => ({ name })),
    arch,
    registryImage: server.reference,
    ...(embed.release && release && { release }),
  });
  await engine.run(checkSpace, { plan, ...roomOf(request) });
  return { plan, server };
}

export const architectureOf = ({ architecture }: InstallationConfig): RpmArchitecture =>
  archNames.toRpm(architecture);

const EVERYTHING = {
  catalogs: [],
  blockedImages: [],
  allArchitectures: false,
  includeSignatures: true,
} as const;

async function chooseServer(
  { config, embed: { registryImage }, graphUrl, signatures }: InstallationIsoRequest,
  tools: BuildTools,
  release: Release | undefined,
): Promise<RegistryImageChoice> {
  if (registryImage !== undefined) {
    return tools.engine.run(inspectRegistryImage, {
      reference: parseReference(registryImage),
      isComponent: false,
      arch: architectureOf(config),
      version: config.seedVersion,
    });
  }
  if (release) {
    const options = { release, signatures, configure: CONFIGURE_BY_OPTION };
    return selectRegistryImage({ ...options, ...withoutUndefined({ graphUrl }) }, tools);
  }
  throw new ConfigError(
    'installation.no-registry-image',
    'the ISO would carry images, but no registry server to serve them',
    { hint: 'name a release with --release, or a registry server with --registry-image' },
  );
}
