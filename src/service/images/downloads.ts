import { pack } from 'tar-stream';
import { decodeFileContent } from '../../ignition/config.ts';
import { planHostNetworks } from '../../openshift/agent/values.ts';
import { BASE_PATH, identify, type App, type Exchange, type Service } from '../context.ts';
import { ApiFailure } from '../api-failure.ts';
import type { InfraEnv } from '../infra-envs/infra-env.ts';
import { findInfraEnv } from '../infra-envs/routes.ts';
import { IMAGE_TYPE } from '../infra-envs/infra-env-rules.ts';
import { requireUuid } from '../openapi.ts';
import { createRecent, type Recent } from '../recent.ts';
import { serveText } from './customised-images.ts';
import { signImageUrl } from './image-url.ts';
import { listHosts } from './infra-env-values.ts';
import { findRelease } from './find-release.ts';
import { renderIpxeScript } from './ipxe-script.ts';
import { sendBytes } from './send-bytes.ts';

const FILES = ['discovery.ign', 'ipxe-script', 'static-network-config'];

/** Profiles in memory; those of hundreds of hosts have a few MiB. */
const MOST_ARCHIVES = 16;

/** `v2DownloadInfraEnvFiles`, `GetInfraEnvDownloadURL`. */
export function addDownloadRoutes(app: App, service: Service): void {
  const archives = createRecent<Uint8Array>(MOST_ARCHIVES);
  const downloads = `${BASE_PATH}/v2/infra-envs/:infra_env_id/downloads`;
  app.get(`${downloads}/files`, async (exchange) => {
    const infraEnv = await findForDownload(service, exchange);
    return sendFile(service, exchange, { infraEnv, archives });
  });
  app.get(`${downloads}/image-url`, async (exchange) => {
    const identity = await identify(service, exchange);
    const id = requireUuid(exchange.req.param('infra_env_id'), 'infra_env_id');
    const infraEnv = await findInfraEnv(service, id, identity);
    const signed = await signImageUrl(service, exchange, infraEnv);
    if (!signed) throw new ApiFailure(404, `infra env ${id} is not bound to a cluster`);
    return exchange.json({ url: signed.url, expires_at: signed.expires });
  });
}

/** Whoever has a token of the InfraEnv may have its files, too. */
export async function findForDownload(service: Service, exchange: Exchange): Promise<InfraEnv> {
  const id = requireUuid(exchange.req.param('infra_env_id') ?? '', 'infra_env_id');
  const token =
    exchange.req.header('image-token') ??
    exchange.req.query('image_token') ??
    exchange.req.query('api_key');
  if (token === undefined || service.auth.type === 'none') {
    return findInfraEnv(service, id, await identify(service, exchange));
  }
  return findByToken(service, token, id);
}

/** @throws ApiFailure 401, and 404 where it is of another InfraEnv */
export async function findByToken(
  service: Service,
  token: string,
  expected?: string,
): Promise<InfraEnv> {
  const id = await service.urlTokens.verify(token);
  const record = await service.state.read('infra-envs', id);
  if (!record || (expected !== undefined && id !== expected)) {
    throw new ApiFailure(404, `infra env ${expected ?? id} not found`);
  }
  return findInfraEnv(service, id, record);
}

function requireFileName({ req }: Exchange): string {
  const name = req.query('file_name') ?? '';
  if (!FILES.includes(name)) {
    throw new ApiFailure(400, `unknown file type for download: ${name}`);
  }
  if (req.query('ipxe_script_type') !== undefined && name !== 'ipxe-script') {
    throw new ApiFailure(400, '"ipxe_script_type"" can be set only for "ipxe-script"');
  }
  const type = req.query('discovery_iso_type') ?? IMAGE_TYPE;
  if (type !== IMAGE_TYPE) {
    throw new ApiFailure(
      400,
      `image type ${type} is not supported: this service has ${IMAGE_TYPE} alone`,
    );
  }
  return name;
}

async function sendFile(
  service: Service,
  exchange: Exchange,
  { infraEnv, archives }: { readonly infraEnv: InfraEnv; readonly archives: Recent<Uint8Array> },
): Promise<Response> {
  const name = requireFileName(exchange);
  const lastModified = new Date(infraEnv.updated_at);
  if (name === 'discovery.ign') {
    const release = await findRelease(service, infraEnv);
    const text = await service.images.readIgnition(infraEnv, release);
    return sendBytes(exchange, serveText(text), { filename: name, lastModified });
  }
  if (name === 'static-network-config') {
    const { id, revision } = infraEnv;
    const filename = `${id}-static-network-config.tar`;
    const archive = await archives.get(`${id} ${revision}`, () => packNetworks(infraEnv));
    return sendBytes(exchange, serveText(archive), { filename, lastModified });
  }
  const release = await findRelease(service, infraEnv);
  const script = await renderIpxeScript(service, exchange, { infraEnv, release });
  return sendBytes(exchange, serveText(script), { filename: name, lastModified });
}

/** The profiles of the hosts as a tar; nothing where there are none. */
async function packNetworks(infraEnv: InfraEnv): Promise<Uint8Array> {
  const files = planHostNetworks(listHosts(infraEnv));
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
