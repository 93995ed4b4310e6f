import { TLSSocket } from 'node:tls';
import { BASE_PATH, type App, type Exchange, type Service } from './context.ts';
import { ApiFailure } from './openapi.ts';

/*
 * Owns what a service with TLS answers on its second address, without TLS: images, for the management
 * controllers and machines that do not speak TLS, and nothing that a user signs in for.
 */

/** True for a request without TLS to a service that has it. */
export const isPlain = ({ isTls }: Pick<Service, 'isTls'>, { env }: Exchange): boolean =>
  isTls && !(env.passed?.isTls ?? env.incoming.socket instanceof TLSSocket);

/** Paths that need no more than a URL: images, files for network boot, probes. */
const OPEN = [
  /^\/(?:i|byid|byapikey|bytoken|images|boot-artifacts)\//,
  /^\/s390x-initrd-addrsize$/,
  /^\/(?:live|ready|health)$/,
  new RegExp(`^${BASE_PATH}/v2/infra-envs/[^/]+/downloads/files$`),
];

/** Text for people and for controllers that ask for the root first. */
const PAGE =
  '<!doctype html><html lang="en"><title>sealift</title>' +
  '<p>Images are handed out here. The page to make them is at the https:// address of this service.</p>';

/** Adds the rules for requests without TLS; before all routes. */
export function addPlainRules(app: App, service: Service): void {
  app.use(async (exchange, next) => {
    if (!isPlain(service, exchange)) return next();
    const { path } = exchange.req;
    if (path === '/') return exchange.html(PAGE);
    if (OPEN.some((form) => form.test(path))) return next();
    throw new ApiFailure(403, 'only images are served without TLS: use the https:// address');
  });
}
