import type { IncomingMessage, ServerResponse } from 'node:http';
import { serveBytes } from '../../base/http/serve-bytes.ts';
import type { AnsweredRequest } from '../app.ts';
import { checkAsker, type Service } from '../context.ts';
import { ApiFailure } from '../openapi.ts';
import type { KnownImage } from './known-urls.ts';

/** Answers a request, or leaves it to the routes. */
export type AnswerKnown = (
  request: IncomingMessage,
  response: ServerResponse,
  routes: () => void,
) => void;

/**
 * Answers requests of known URLs in front of the router. Every refusal, and every
 * failure to read before the first byte, is left to the routes.
 */
export function createKnownAnswers(
  service: Pick<Service, 'knownUrls' | 'budgets' | 'publicUrl' | 'isLocal' | 'corsOrigins'>,
  onAnswer: (request: AnsweredRequest) => void,
): AnswerKnown {
  return (request, response, routes) => {
    const image = findKnown(service, request, response);
    if (!image) {
      routes();
      return;
    }
    const { method = '' } = request;
    const { served, options, route } = image;
    const started = performance.now();
    serveBytes({ request, response }, served, options).then(({ status, complete, error }) => {
      const milliseconds = performance.now() - started;
      const failed = error === undefined ? {} : { error };
      onAnswer({ method, route, status, isCut: !complete, milliseconds, ...failed });
    }, routes);
  };
}

/** Finds the image of a request; not if the routes would refuse it. */
function findKnown(
  service: Parameters<typeof createKnownAnswers>[0],
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): KnownImage | undefined {
  const { method } = incoming;
  const image =
    method === 'GET' || method === 'HEAD' ? service.knownUrls.find(incoming) : undefined;
  if (!image) return undefined;
  try {
    checkAsker(service, incoming);
    service.budgets.admit({ incoming, outgoing }, image.tenant);
    return image;
  } catch (error) {
    if (error instanceof ApiFailure) return undefined;
    throw error;
  }
}
