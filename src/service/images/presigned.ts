import { BASE_PATH, identify, NO_EXPIRY, noteChange } from '../context.ts';
import type { App, Exchange, Service } from '../context.ts';
import { findInfraEnv } from '../infra-envs/routes.ts';
import type { InfraEnv } from '../infra-envs/infra-env.ts';
import { ApiFailure, requireUuid } from '../openapi.ts';
import { findName, formatRevision, originOf } from './urls.ts';

/* Owns the URLs of the files of an InfraEnv, and the initrd of minimal ISOs, which no InfraEnv has. */

/** Adds `GetInfraEnvPresignedFileURL`, `DownloadMinimalInitrd`. */
export function addPresignedRoutes(app: App, service: Service): void {
  const downloads = `${BASE_PATH}/v2/infra-envs/:infra_env_id/downloads`;
  app.get(`${downloads}/files-presigned`, async (exchange) => {
    const infraEnv = await findAsked(service, exchange);
    return exchange.json(await signFileUrl(service, exchange, infraEnv));
  });
  app.get(`${downloads}/minimal-initrd`, async (exchange) => {
    await findAsked(service, exchange);
    return exchange.body(null, 204);
  });
}

async function findAsked(service: Service, exchange: Exchange): Promise<InfraEnv> {
  const identity = await identify(service, exchange);
  const id = requireUuid(exchange.req.param('infra_env_id') ?? '', 'infra_env_id');
  return findInfraEnv(service, id, identity);
}

const FILES = ['discovery.ign', 'ipxe-script'];
const SCRIPT_TYPES = ['discovery-image-always', 'boot-order-control'];

async function signFileUrl(
  service: Service,
  exchange: Exchange,
  infraEnv: InfraEnv,
): Promise<object> {
  const { id } = infraEnv;
  const { file_name: name, ipxe_script_type: type } = exchange.req.query();
  requireOneOf('file_name', name ?? '', FILES);
  if (type !== undefined) requireOneOf('ipxe_script_type', type, SCRIPT_TYPES);
  const query = new URLSearchParams({ file_name: name ?? '' });
  if (type !== undefined) query.set('ipxe_script_type', type);
  const signed = service.auth.type === 'none' ? undefined : await sign(service, infraEnv);
  const { revision } = infraEnv;
  await noteChange(service, exchange, { event: 'url.issue', id, revision, file: name });
  if (signed) query.set(service.auth.type === 'local' ? 'api_key' : 'image_token', signed.token);
  const path = `${BASE_PATH}/v2/infra-envs/${id}/downloads/files`;
  return {
    url: `${originOf(service, exchange)}${path}?${query.toString()}`,
    expires_at: signed?.expires.toISOString() ?? NO_EXPIRY,
  };
}

/** Signs the files of the current revision. */
async function sign(
  service: Service,
  infraEnv: InfraEnv,
): Promise<{ readonly token: string; readonly expires: Date }> {
  const name = await findName(service, infraEnv);
  const release = name && (await service.releases.find(name.version, name.architecture));
  return service.urlTokens.sign({
    id: infraEnv.id,
    revision: formatRevision(infraEnv, release),
  });
}

/** Requires one of the values of a parameter. */
export function requireOneOf(name: string, value: string, known: readonly string[]): void {
  if (value === '') throw new ApiFailure(400, `${name} in query is required`);
  if (known.includes(value)) return;
  throw new ApiFailure(400, `${name} in query should be one of [${known.join(' ')}]`);
}
