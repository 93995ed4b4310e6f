import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Exchange, serveOffer, type ServedEntry } from '../../base/http/serve-bytes.ts';
import type { Budgets } from '../budgets.ts';
import type { KnownImage, KnownUrls } from './known-urls.ts';

/** Answers a request, or leaves it to the routes. */
export type AnswerKnown = (
  request: IncomingMessage,
  response: ServerResponse,
  routes: () => void,
) => void;

/** An answer that no route gave. */
export type KnownAnswer = {
  readonly method: string;
  readonly entry: ServedEntry;
  readonly milliseconds: number;
};

/** Notes an answer that begins; the result is called at its end, without an answer if the routes give it. */
export type NoteKnown = (
  request: IncomingMessage,
  image: KnownImage,
) => (answer?: KnownAnswer) => void;

type Known = Pick<Budgets, 'enter' | 'leave'> & { readonly knownUrls: Pick<KnownUrls, 'find'> };

/**
 * Answers requests of known URLs in front of the router. Every refusal, and every
 * failure to read before the first byte, is left to the routes.
 */
export function createKnownAnswers({ knownUrls, ...budgets }: Known, note: NoteKnown): AnswerKnown {
  const serve = createImageAnswers(budgets, note);
  return (request, response, routes) => {
    const { method } = request;
    const image = method === 'GET' || method === 'HEAD' ? knownUrls.find(request) : undefined;
    if (image) serve({ request, response }, image, routes);
    else routes();
  };
}

/** Creates a function that answers with an image; `routes` is called if the tenant has too much, or it cannot be read. */
export function createImageAnswers(
  { enter, leave }: Pick<Budgets, 'enter' | 'leave'>,
  note: NoteKnown,
): (exchange: Exchange, image: KnownImage, routes: () => void) => void {
  return (exchange, image, routes) => {
    const { method = '' } = exchange.request;
    if (!enter(image.tenant)) {
      routes();
      return;
    }
    const started = performance.now();
    const end = note(exchange.request, image);
    serveOffer(exchange, image.offer, {
      done(entry) {
        leave(image.tenant);
        end({ method, entry, milliseconds: performance.now() - started });
      },
      failed() {
        leave(image.tenant);
        end();
        routes();
      },
    });
  };
}
