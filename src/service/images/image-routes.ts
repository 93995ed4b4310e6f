import { ApiFailure } from '../api-failure.ts';
import type { App, Exchange, Service } from '../context.ts';
import type { InfraEnv } from '../infra-envs/infra-env.ts';
import { findInfraEnv } from '../infra-envs/routes.ts';
import { requireUuid } from '../openapi.ts';
import { findByToken, findForDownload } from './downloads.ts';
import { addBootRoutes } from './boot-artifacts.ts';
import { readShortDigest, requireRevision, URL_KINDS } from './image-url.ts';
import { findRelease, requireStore } from './find-release.ts';
import { sendBytes } from './send-bytes.ts';

/** Short names of the types of images. */
const SHORT_NAMES: Readonly<Record<string, string>> = {
  'full.iso': 'full-iso',
  'minimal.iso': 'minimal-iso',
  'disconnected.iso': 'disconnected-iso',
};

/** What assisted-image-service serves. */
export function addImageRoutes(app: App, service: Service): void {
  addBootRoutes(app, service);
  app.get('/byid/:infra_env_id/:version/:arch/:file', async (exchange) => {
    const id = requireUuid(exchange.req.param('infra_env_id'), 'infra_env_id');
    const infraEnv = await findInfraEnv(service, id, await service.auth.identify(undefined));
    return sendShort(service, exchange, infraEnv);
  });
  for (const kind of [URL_KINDS.local, URL_KINDS.rhsso]) {
    app.get(`/${kind}/:token/:version/:arch/:file`, async (exchange) => {
      const infraEnv = await findByToken(service, exchange.req.param('token'));
      return sendShort(service, exchange, infraEnv);
    });
  }
  app.get('/images/:infra_env_id', async (exchange) => {
    const type = requireQuery(exchange, 'type', () => {
      const version = exchange.req.query('version') ?? '';
      if (version === '') throw new ApiFailure(400, "'version' parameter required");
    });
    const infraEnv = await findForDownload(service, exchange);
    const { version = '', arch = 'x86_64' } = exchange.req.query();
    return sendImage(service, exchange, { infraEnv, version, arch, type });
  });
}

function requireQuery({ req }: Exchange, name: 'type', first: () => void): string {
  first();
  const value = req.query(name) ?? '';
  if (value === '') throw new ApiFailure(400, `'${name}' parameter required`);
  if (Object.values(SHORT_NAMES).includes(value)) return value;
  throw new ApiFailure(400, `invalid value '${value}' for parameter '${name}'`);
}

function sendShort(service: Service, exchange: Exchange, infraEnv: InfraEnv): Promise<Response> {
  const { version = '', arch = '', file = '' } = exchange.req.param() as Record<string, string>;
  const type = Object.hasOwn(SHORT_NAMES, file) ? SHORT_NAMES[file] : undefined;
  if (type === undefined) throw new ApiFailure(404, `unrecognized file name ${file}`);
  return sendImage(service, exchange, { infraEnv, version, arch, type });
}

type Asked = {
  readonly infraEnv: InfraEnv;
  readonly version: string;
  readonly arch: string;
  readonly type: string;
};

async function sendImage(service: Service, exchange: Exchange, asked: Asked): Promise<Response> {
  const { infraEnv, version, arch, type } = asked;
  await requireStore(service);
  const release = await findRelease(service, infraEnv, readShortDigest(exchange));
  if (type !== 'disconnected-iso') throw new ApiFailure(404, `no image of type ${type} is served`);
  if (version !== release.version || arch !== release.architecture) {
    throw new ApiFailure(404, `infra env ${infraEnv.id} has no image of ${version} for ${arch}`);
  }
  requireRevision(exchange, infraEnv, release);
  const image = await service.images.open(infraEnv, release);
  return sendBytes(exchange, image, {
    filename: `agent-ove.${arch}.iso`,
    lastModified: new Date(infraEnv.updated_at),
  });
}
