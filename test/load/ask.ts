import { request, type IncomingHttpHeaders } from 'node:http';
import { request as requestByTls } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { TLSSocket } from 'node:tls';
import type { Door, Excuse } from './front.ts';

/** A client that waits longer for a byte has met a server that hangs. */
const HANG_MS = 60_000;

/** A service waits no longer for a handshake, or for the head of a request: this machine may be that slow. */
const HEAD_MS = 10_000;

export type Asked = {
  readonly method?: string;
  /** A path, or a URL that the service gave. */
  readonly target: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** Is given the head, then each piece; the rest is not wanted when it returns false. */
  readonly onHead?: (head: Head) => void;
  readonly onPiece?: (piece: Buffer, offset: number) => boolean;
  /** Milliseconds that the client waits after each piece. */
  readonly pause?: number;
};

export type Head = { readonly status: number; readonly headers: IncomingHttpHeaders };

export type Answer =
  | (Head & {
      readonly kind: 'answer';
      /** Where no `onPiece` took them. */
      readonly text: string;
      /** Whether all bytes came; not so where the client had enough. */
      readonly isWhole: boolean;
      readonly began: number;
    })
  /** The connection broke; `head` and `received` say how far it came. */
  | {
      readonly kind: 'broken';
      readonly excuse: Excuse | undefined;
      readonly message: string;
      readonly head?: Head;
      readonly received: number;
      readonly began: number;
    };

/** One request on a connection of its own. */
export async function ask(door: Door, asked: Asked): Promise<Answer> {
  const began = performance.now();
  const { certificates } = door;
  const scheme = certificates ? 'https' : 'http';
  const { pathname, search } = new URL(asked.target, 'http://127.0.0.1');
  const url = new URL(pathname + search, `${scheme}://127.0.0.1:${door.port}`);
  const body = asked.body === undefined ? undefined : JSON.stringify(asked.body);
  let port = 0;
  let head: Head | undefined;
  let received = 0;
  let isHanging = false;
  const isLate = (): boolean => !isHanging && performance.now() - began >= HEAD_MS;
  const broken = (message: string): Answer => ({
    kind: 'broken',
    excuse:
      door.excuseOf(port, head !== undefined) ?? (!head && isLate() ? 'slow client' : undefined),
    message,
    received,
    began,
    ...(head && { head }),
  });
  return await new Promise<Answer>((resolve) => {
    const sent = (certificates ? requestByTls : request)(url, {
      ...(certificates && { ca: certificates.authority }),
      method: asked.method ?? 'GET',
      agent: false,
      headers: {
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...asked.headers,
      },
    });
    sent.on('socket', (socket) => {
      const learn = (): void => {
        port = socket.localPort ?? 0;
      };
      if (socket.connecting) socket.once('connect', learn);
      else learn();
      if (!(socket instanceof TLSSocket)) return;
      socket.once('secureConnect', () => {
        certificates?.check(socket.getPeerCertificate().fingerprint256, began);
      });
    });
    sent.setTimeout(HANG_MS, () => {
      isHanging = true;
      sent.destroy(new Error(`HANG: no byte for ${HANG_MS} ms`));
    });
    sent.on('error', (error) => {
      resolve(broken(error.message));
    });
    sent.on('response', (response) => {
      head = { status: response.statusCode ?? 0, headers: response.headers };
      const { status, headers } = head;
      asked.onHead?.(head);
      const pieces: Buffer[] = [];
      const finish = (isWhole: boolean): void => {
        const text = Buffer.concat(pieces).toString();
        const isEnding = status === 503 && door.excuseOf(port, false) !== undefined;
        if (isEnding || (status === 408 && isLate())) {
          head = undefined;
          resolve(broken(String(status)));
          return;
        }
        resolve({ kind: 'answer', status, headers, text, isWhole, began });
      };
      const read = async (): Promise<void> => {
        for await (const piece of response as AsyncIterable<Buffer>) {
          const offset = received;
          received += piece.length;
          if (!asked.onPiece) pieces.push(piece);
          else if (!asked.onPiece(piece, offset)) {
            finish(false);
            return;
          }
          if (asked.pause !== undefined) await sleep(asked.pause);
        }
        finish(true);
      };
      read().catch((error: unknown) => {
        resolve(broken(error instanceof Error ? error.message : String(error)));
      });
    });
    sent.end(body);
  });
}
