import { withoutUndefined } from '../../base/lists.ts';
import { parseMacAddress } from '../../base/mac-address.ts';
import { pack } from 'tar-stream';
import { decodeFileContent } from '../../ignition/index.ts';
import { editKargs } from '../../iso/index.ts';
import { readLiveAreas } from '../../media/areas.ts';
import { planHostNetworks } from '../../openshift/agent/values.ts';
import type { TokenSubject } from '../auth/tokens.ts';
import {
  type Exchange,
  type Service,
  BASE_PATH,
  identify,
  noteChange,
  type App,
} from '../context.ts';
import type { InfraEnv } from '../infra-envs/infra-env.ts';
import { findInfraEnv } from '../infra-envs/routes.ts';
import { IMAGE_TYPE } from '../infra-envs/rules.ts';
import { ApiFailure, requireUuid } from '../openapi.ts';
import { useRelease, type Release } from '../store/entry.ts';
import { serveText } from './images.ts';
import { createRecent, type Recent } from './recent.ts';
import { requireOneOf } from './presigned.ts';
import { findForDownload, findRelease, requireNetworkBoot, type AskedImage } from './find-image.ts';
import { judgeControllers, type OfferedUrls } from './controllers.ts';
import { describeImage, formatSha256Url } from './sha256.ts';
import {
  chooseLastModified,
  describeFile,
  formatRevision,
  originOf,
  sendFile,
  signImageUrl,
  type SignedUrl,
} from './urls.ts';
import { planNetworksOf } from './values.ts';

/** Archives of profiles in memory; one for hundreds of hosts has a few MiB. */
const MOST_ARCHIVES = 16;

/** Adds `v2DownloadInfraEnvFiles`, `GetInfraEnvDownloadURL`. */
export function addDownloadRoutes(app: App, service: Service): void {
  const archives = createRecent<Uint8Array>(MOST_ARCHIVES);
  const downloads = `${BASE_PATH}/v2/infra-envs/:infra_env_id/downloads`;
  app.get(`${downloads}/files`, async (exchange) => {
    const asked = await findForDownload(service, exchange);
    return sendNamed(service, exchange, { asked, archives });
  });
  app.get(`${downloads}/image-url`, async (exchange) => {
    const identity = await identify(service, exchange);
    const id = requireUuid(exchange.req.param('infra_env_id'), 'infra_env_id');
    const infraEnv = await findInfraEnv(service, id, identity);
    const signed = await signImageUrl(service, exchange, infraEnv);
    if (!signed) throw new ApiFailure(404, `infra env ${id} is not bound to a cluster`);
    const { revision } = infraEnv;
    await noteChange(service, exchange, { event: 'url.issue', id, revision });
    const { url, release } = signed;
    return exchange.json({
      url,
      ...(release && (await describeIfMade(service, infraEnv, release))),
      sha256_url: formatSha256Url(url),
      expires_at: signed.expires,
      long_url: signed.longUrl,
      http_url: signed.httpUrl,
      controllers: judgeControllers(offerUrls(signed)),
    });
  });
}

/**
 * Describes an image; returns undefined if its ISO cannot be made now. The client gets the URL all the same: a network boot
 * may work, and the download reports the reason.
 */
async function describeIfMade(service: Service, infraEnv: InfraEnv, release: Release) {
  try {
    const image = await service.images.open(infraEnv, release);
    return await describeImage(service, { infraEnv, release, image });
  } catch (error) {
    if (error instanceof ApiFailure) return undefined;
    throw error;
  }
}

async function sendNamed(
  service: Service,
  exchange: Exchange,
  { asked, archives }: { readonly asked: AskedImage; readonly archives: Recent<Uint8Array> },
): Promise<Response> {
  const name = requireFileName(exchange);
  const { infraEnv } = asked;
  if (name === 'static-network-config') {
    const { id, revision } = infraEnv;
    const filename = `${id}-static-network-config.tar`;
    const archive = await archives.get(`${id} ${revision}`, () =>
      packNetworks(infraEnv, service.networkTool),
    );
    const lastModified = chooseLastModified(service, infraEnv);
    const served = serveText(archive);
    return sendFile(service, exchange, {
      served,
      options: { filename, ...withoutUndefined({ lastModified }) },
      file: describeFile(infraEnv, served, { file: name }),
    });
  }
  const release = await findRelease(service, asked);
  const lastModified = chooseLastModified(service, infraEnv, release);
  const text =
    name === 'discovery.ign'
      ? await service.images.readIgnition(infraEnv, release)
      : await renderIpxeScript(service, exchange, { infraEnv, release });
  const served = serveText(text);
  return sendFile(service, exchange, {
    served,
    options: { filename: name, ...withoutUndefined({ lastModified }) },
    file: describeFile(infraEnv, served, { file: name, release }),
  });
}

const offerUrls = ({ url, httpUrl }: SignedUrl): OfferedUrls =>
  url.startsWith('https:') ? { https: url, ...(httpUrl && { http: httpUrl }) } : { http: url };

const FILES = ['discovery.ign', 'ipxe-script', 'static-network-config'];

const IMAGE_TYPES = ['full-iso', 'minimal-iso', IMAGE_TYPE];

function requireFileName({ req }: Exchange): string {
  const { file_name: name = '', discovery_iso_type: type = IMAGE_TYPE } = req.query();
  requireOneOf('file_name', name, FILES);
  requireOneOf('discovery_iso_type', type, IMAGE_TYPES);
  if (req.query('ipxe_script_type') !== undefined && name !== 'ipxe-script') {
    throw new ApiFailure(400, '"ipxe_script_type"" can be set only for "ipxe-script"');
  }
  // The archive of networks is the same for every type.
  if (type === IMAGE_TYPE || name === 'static-network-config') return name;
  throw new ApiFailure(
    400,
    `image type ${type} is not supported: this service has only ${IMAGE_TYPE}`,
  );
}

const INITRD = 'initrd';
const KERNEL = 'kernel';

/**
 * Renders the script with which iPXE boots the customised live system. Both types give the same script:
 * with `boot-order-control`, installed hosts boot from their disk, and hosts never register with an
 * InfraEnv of this service.
 */
async function renderIpxeScript(
  service: Service,
  exchange: Exchange,
  { infraEnv, release }: { readonly infraEnv: InfraEnv; readonly release: Release },
): Promise<string> {
  checkQuery(exchange);
  requireNetworkBoot(release);
  const { id } = infraEnv;
  const { version, architecture } = release;
  const origin = originOf(service, exchange);
  const query = `arch=${architecture}&version=${encodeURIComponent(version)}`;
  const rootfs = `${origin}/boot-artifacts/rootfs?${query}`;
  const revision = formatRevision(infraEnv, release);
  const token = await signQuery(service, { id, revision });
  const kargs = await listArguments(infraEnv, release, rootfs);
  return [
    '#!ipxe',
    `initrd --name ${INITRD} ${origin}/images/${id}/pxe-initrd?${query}&revision=${revision}${token}`,
    `kernel ${origin}/boot-artifacts/${KERNEL}?${query} ${kargs}`,
    'boot',
    '',
  ].join('\n');
}

/** Patterns in kernel arguments that iPXE would change, each with its description. */
const CHANGED_BY_IPXE: readonly (readonly [RegExp, string])[] = [
  [/\$\{/, '"${", which iPXE replaces'],
  [/(?:^|\s)#/, 'a word that begins with "#", a comment to iPXE'],
  [/(?:^|\s)(?:&&|\|\||;)(?:\s|$)/, 'the word "&&", "||" or ";", which ends a command of iPXE'],
  [/\\$/, '"\\" at its end, which makes iPXE continue on the next line'],
];

/** Bytes of a command line that Linux reads on x86_64, aarch64 and ppc64le; it ignores the rest silently. */
const COMMAND_LINE = 2047;

/** Arguments of the ISO, with the root file system's URL instead of a volume label, and the customer's. */
async function listArguments(
  infraEnv: InfraEnv,
  release: Release,
  rootfs: string,
): Promise<string> {
  const append = (infraEnv.kernel_arguments ?? []).map(({ value }) => value.trim());
  const changed = CHANGED_BY_IPXE.find(([form]) => append.some((value) => form.test(value)));
  if (changed) throw new ApiFailure(400, `a kernel argument has ${changed[1]}`);
  const { kargs } = await useRelease(release, readLiveAreas);
  const own = (kargs?.default ?? 'ignition.firstboot ignition.platform.id=metal')
    .split(' ')
    .filter((word) => !word.startsWith('coreos.liveiso='))
    .join(' ');
  const text = editKargs(`initrd=${INITRD} ${own}`, {
    remove: [],
    append: [`coreos.live.rootfs_url=${rootfs}`, ...append],
  });
  // With UEFI firmware, the file name is the first word.
  const size = Buffer.byteLength(`${KERNEL} ${text}`);
  if (size <= COMMAND_LINE) return text;
  throw new ApiFailure(
    400,
    `the kernel reads at most ${COMMAND_LINE} bytes of arguments, but the ISO and the infra env have ${size}`,
  );
}

/** Signs a query, with the parameter name that assisted-service uses. */
async function signQuery({ auth, urlTokens }: Service, subject: TokenSubject): Promise<string> {
  if (auth.type === 'none') return '';
  const { token } = await urlTokens.sign(subject);
  return `&${auth.type === 'local' ? 'api_key' : 'image_token'}=${token}`;
}

const TYPES = ['discovery-image-always', 'boot-order-control'];

function checkQuery({ req }: Exchange): void {
  const { mac, ipxe_script_type: type = 'discovery-image-always' } = req.query();
  if (mac !== undefined && parseMacAddress(mac) === undefined) {
    throw new ApiFailure(
      400,
      `mac in query must be of type mac: ${JSON.stringify(mac.slice(0, 64))}`,
    );
  }
  requireOneOf('ipxe_script_type', type, TYPES);
}

/** Packs the profiles of the hosts as a tar; empty if there are no profiles. */
async function packNetworks(
  infraEnv: InfraEnv,
  networkTool: Service['networkTool'],
): Promise<Uint8Array> {
  const files = planHostNetworks(await planNetworksOf(infraEnv, networkTool));
  if (files.length === 0) return new Uint8Array();
  const archive = pack();
  for (const file of files) {
    const mtime = new Date(infraEnv.updated_at);
    archive.entry({ name: file.path, mode: 0o600, mtime }, decodeFileContent(file) ?? Buffer.of());
  }
  archive.finalize();
  const pieces: Buffer[] = [];
  for await (const piece of archive) pieces.push(piece as Buffer);
  return Buffer.concat(pieces);
}
