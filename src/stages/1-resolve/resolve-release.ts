import { restate } from '../../base/download/source-answers.ts';
import { ConfigError, IntegrityError, SealiftError } from '../../base/errors.ts';
import type { Http } from '../../base/http/http.ts';
import type { TlsOptions } from '../../base/http/tls.ts';
import type { Stage, StageContext } from '../../engine/index.ts';
import { clampEpoch } from '../../iso/index.ts';
import { openImage, fetchBlob, type ImageTools, type OpenImage } from '../../openshift/images.ts';
import { archNames, platformOf, type RpmArchitecture } from '../../openshift/release/bundle.ts';
import { fetchPayloadFiles } from '../../openshift/release/fetch-payload.ts';
import { type PayloadFiles, readPayloadFiles } from '../../openshift/release/payload.ts';
import { parseReleaseConfig, type Release } from '../../openshift/release/release.ts';
import { resolveInGraph } from '../../openshift/release/update-graph.ts';
import { isWantedVersion, stripBuild } from '../../openshift/release/version.ts';
import { formatReference, parseReference, type Reference } from '../../registry/index.ts';

export type ResolveReleaseInput = {
  /** A pullspec, by tag or digest; then channel and graph are not consulted. */
  readonly url?: string;
  readonly version: string;
  readonly channel: string;
  /** Absent: the architecture of the payload at `url`; x86_64 if there are several. */
  readonly arch?: RpmArchitecture;
  /** UPDATE_URL_OVERRIDE, if it is set. */
  readonly graphUrl?: string;
  /** The error if the release cannot be resolved and the user did not ask for it by name. */
  readonly otherwise?: { readonly message: string; readonly hint: string };
};

export type ResolveReleaseTools = Pick<ImageTools, 'client' | 'cache'> & {
  readonly http: Http;
  readonly tls?: TlsOptions;
};

/** Reads the description in the payload: only the layer with the release manifests is fetched. */
export const resolveRelease: Stage<ResolveReleaseInput, Release, ResolveReleaseTools> = {
  name: 'resolve release',
  async run(input, tools, context) {
    try {
      return await resolve(input, { ...tools, ...context });
    } catch (error) {
      const { otherwise } = input;
      if (otherwise === undefined || !(error instanceof SealiftError)) throw error;
      throw restate(error, `${otherwise.message}: ${error.message}`, otherwise.hint);
    }
  },
};

type Tools = ResolveReleaseTools & StageContext;

async function resolve(input: ResolveReleaseInput, tools: Tools): Promise<Release> {
  const named = await findPayload(input, tools);
  const opened = await openPayload(input, tools, named.payload);
  const { reference, image } = opened;
  const config = parseReleaseConfig(await fetchBlob(tools, reference, image.config));
  const arch = input.arch ?? archNames.toRpm(config.architecture);
  if (config.architecture !== archNames.toGo(arch)) {
    throw archMismatch(arch, config.architecture, reference);
  }
  const { references, metadata, ...manifests } = await readPayload(tools, opened);
  const { version } = metadata;
  checkSame(version, references.version, 'its image-references');
  checkSame(version, config.version ?? version, 'its label io.openshift.release');
  checkWanted(named, version, reference);
  return {
    version,
    reference,
    arch,
    created: formatCreated(references.created ?? config.created, reference),
    components: references.components,
    metadata,
    ...manifests,
  };
}

type NamedPayload = {
  readonly version: string;
  readonly payload: Reference;
  /** True if the version is next to a pullspec; otherwise it is the exact version in the update graph. */
  readonly isByUrl: boolean;
};

async function findPayload(
  { url, version, channel, arch = DEFAULT_ARCH, graphUrl }: ResolveReleaseInput,
  tools: Tools,
): Promise<NamedPayload> {
  if (url !== undefined && url !== '') {
    return { version, payload: parseReference(url), isByUrl: true };
  }
  const { http, signal, tls } = tools;
  const found = await resolveInGraph({
    http,
    channel,
    arch,
    version,
    signal,
    ...(graphUrl !== undefined && graphUrl !== '' && { url: graphUrl }),
    ...(tls && { tls }),
  });
  return { ...found, isByUrl: false };
}

/** Opens a payload. A payload of one architecture is opened as a payload of that architecture. */
async function openPayload(
  { arch = DEFAULT_ARCH }: ResolveReleaseInput,
  tools: Tools,
  payload: Reference,
): Promise<OpenImage> {
  try {
    return await openImage(tools, payload, platformOf(arch));
  } catch (error) {
    if (!(error instanceof ConfigError) || error.code !== 'image.no-platform') throw error;
    throw restate(
      error,
      error.message,
      'set ocpRelease.cpuArchitecture to an architecture of the payload',
    );
  }
}

const DEFAULT_ARCH = 'x86_64';

const readPayload = async (tools: ImageTools, opened: OpenImage): Promise<PayloadFiles> =>
  readPayloadFiles(await fetchPayloadFiles(tools, opened), opened.reference);

function checkSame(version: string, other: string, where: string): void {
  if (stripBuild(version) === stripBuild(other)) return;
  throw new IntegrityError(
    'release.version-conflict',
    `payload is release ${version} according to its metadata, but ${other} according to ${where}`,
    { expected: version, found: other },
  );
}

function checkWanted(
  { version: wanted, isByUrl }: NamedPayload,
  found: string,
  reference: Reference,
): void {
  const isWanted = isByUrl
    ? isWantedVersion(wanted, found)
    : stripBuild(wanted) === stripBuild(found);
  if (isWanted) return;
  throw new ConfigError(
    'release.version-mismatch',
    `payload ${formatReference(reference)} is release ${found}, but the configuration asks for ${wanted}`,
    {
      expected: wanted,
      found,
      hint: `set ocpRelease.version to "${found}", or correct ocpRelease.url`,
    },
  );
}

const archMismatch = (wanted: string, found: string, reference: Reference): ConfigError =>
  new ConfigError(
    'release.arch-mismatch',
    `payload ${formatReference(reference)} is for ${found}, but the configuration asks for ${wanted}`,
    {
      expected: wanted,
      found,
      hint: 'correct ocpRelease.cpuArchitecture or ocpRelease.url',
    },
  );

function formatCreated(created: string | undefined, reference: Reference): string {
  const time = new Date(created ?? '');
  if (!Number.isNaN(time.getTime()))
    return new Date(clampEpoch(time) * 1000).toISOString().replace(/\.\d+Z$/, 'Z');
  throw new IntegrityError(
    'release.malformed',
    `payload ${formatReference(reference)} has no valid creation time`,
    { expected: 'an RFC 3339 time', found: created ?? 'nothing' },
  );
}
