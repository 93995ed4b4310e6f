import { Readable } from 'node:stream';

/** A body that comes in pieces tells of each that is taken from it, so that sending a long one is not silence. */
export function watchBody(
  body: string | Uint8Array | AsyncIterable<Uint8Array> | undefined,
  onPiece: () => void,
): string | Uint8Array | Readable | null {
  if (body === undefined) return null;
  if (typeof body === 'string' || body instanceof Uint8Array) return body;
  const stream = Readable.from(watch(body, onPiece), { objectMode: false, highWaterMark: 1 });
  // Whoever sends it hears of its failure; before that, nobody may be there to listen.
  return stream.on('error', () => undefined);
}

async function* watch(
  body: AsyncIterable<Uint8Array>,
  onPiece: () => void,
): AsyncGenerator<Uint8Array> {
  for await (const piece of body) {
    onPiece();
    yield piece;
  }
}
