import { ConfigError } from '../../base/errors.ts';
import type { InstallationConfig } from '../../config/installation/installation-config.ts';
import {
  chooseRegistryImage,
  type RegistryImageChoice,
} from '../../openshift/mirror/registry-image.ts';
import { archNames } from '../../openshift/release/architecture.ts';
import type { RpmArchitecture } from '../../openshift/release/release-bundle.ts';
import type { Release } from '../../openshift/release/release-payload.ts';
import { parseReference } from '../../registry/reference.ts';
import { planMirror } from '../../stages/plan-mirror.ts';
import { readPrecacheList } from '../../stages/read-precache-list.ts';
import { resolveRelease } from '../../stages/resolve-release.ts';
import type { BuildTools } from '../build-tools.ts';
import type { EmbeddedImages, InstallationIsoRequest } from './installation-iso-request.ts';
import { reserveSpace } from '../live-iso/space.ts';

export const architectureOf = ({ architecture }: InstallationConfig): RpmArchitecture =>
  archNames.toRpm(architecture);

/** `X.Y` asks the update graph only, and that is not consulted for a pullspec. */
const ANY_VERSION = '4.0';

/** The release payload that the request names. */
export function resolveNamedRelease(
  { release: url, config }: InstallationIsoRequest,
  { engine, client, cache, http }: BuildTools,
): Promise<Release> | undefined {
  if (url === undefined) return undefined;
  return engine.stage({
    name: 'resolve release',
    inputs: { url, arch: architectureOf(config) },
    run: ({ url, arch }, { signal, onProgress }) =>
      resolveRelease(
        { url, arch, version: ANY_VERSION, channel: '' },
        { client, cache, http, signal, onProgress },
      ),
  });
}

/** The seed, the release and what else is carried, by digest, when there is room for it. */
export async function planEmbedded(
  request: InstallationIsoRequest,
  tools: BuildTools,
  named: Promise<Release> | undefined,
): Promise<EmbeddedImages | undefined> {
  const { config, embed } = request;
  const isWanted = embed.seed || embed.release || embed.precached || embed.images.length > 0;
  if (!isWanted) return undefined;
  const release = await named;
  const server = chooseServer(request, release);
  const { engine, client, cache } = tools;
  const wanted = [
    ...(embed.seed ? [config.seedImage] : []),
    ...(embed.precached ? await listPrecached(request, tools) : []),
    ...embed.images,
  ];
  const plan = engine.stage({
    name: 'plan mirror',
    inputs: {
      additionalImages: [...new Set(wanted)].map((name) => ({ name })),
      arch: architectureOf(config),
      registryImage: server.reference,
      ...(embed.release && release && { release }),
    },
    run: (input, { signal, onProgress }) =>
      planMirror(
        { ...input, ...EVERYTHING },
        {
          ...{ client, cache, signal },
          onProgress: (done, total) => {
            onProgress(0, undefined, `${done} of ${total} images`);
          },
        },
      ),
  });
  await engine.stage({
    name: 'check space',
    inputs: { plan },
    run: ({ plan }) => reserveSpace(plan, request, cache),
  });
  return { plan: await plan, server };
}

const listPrecached = (
  { config, workDir }: InstallationIsoRequest,
  { engine, client, cache }: BuildTools,
): Promise<readonly string[]> =>
  engine.stage({
    name: 'read precache list',
    inputs: { seedImage: config.seedImage, arch: architectureOf(config), workDir },
    run: (input, { signal, onProgress }) =>
      readPrecacheList(input, { client, cache, signal, onProgress }),
  });

const EVERYTHING = {
  catalogs: [],
  blockedImages: [],
  allArchitectures: false,
  includeSignatures: true,
} as const;

function chooseServer(
  { embed: { registryImage } }: InstallationIsoRequest,
  release: Release | undefined,
): RegistryImageChoice {
  if (registryImage !== undefined) {
    return { reference: parseReference(registryImage), useDistributionEntrypoint: false };
  }
  if (release) return chooseRegistryImage({ release });
  throw new ConfigError(
    'installation.no-registry-image',
    'images are to be carried on the ISO, and nothing on it could serve them',
    { hint: 'name a release with --release, or a registry server with --registry-image' },
  );
}
