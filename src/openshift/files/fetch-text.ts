import { IntegrityError, RegistryError } from '../../base/errors.ts';
import type { HttpResponse } from '../../base/http.ts';
import { redactUrl } from '../../base/redact.ts';
import { explainNetworkFailure } from '../../registry/client/failure.ts';
import { retry, type Pacing } from '../../registry/client/retry.ts';
import { fetchPublic, type GetOptions } from './http-get.ts';
import type { Http } from '../../base/http.ts';

/**
 * A public document of at most `limit` bytes, as text.
 *
 * @throws IntegrityError `download.too-large`; RegistryError `download.refused`, and what `fetchPublic`
 * throws
 */
export function fetchText(
  http: Http,
  options: GetOptions & { readonly limit: number; readonly pacing?: Pacing },
): Promise<string> {
  const { url, signal, limit, pacing } = options;
  return retry(
    async () => {
      const response = await fetchPublic(http, options);
      if (response.status === 200) return readText(response, url, limit);
      response.body.destroy();
      throw new RegistryError('download.refused', `${redactUrl(url)} answers ${response.status}`, {
        expected: '200',
        found: String(response.status),
        hint: 'check the address; it must be public',
      });
    },
    { ...pacing, host: url.host, signal },
  );
}

async function readText({ body }: HttpResponse, url: URL, limit: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      size += chunk.length;
      if (size > limit) break;
    }
  } catch (cause) {
    throw explainNetworkFailure(url.host, cause);
  }
  if (size <= limit) return Buffer.concat(chunks).toString('utf8');
  throw new IntegrityError('download.too-large', `${redactUrl(url)} has more than ${limit} bytes`, {
    expected: `at most ${limit}`,
    found: `more than ${limit}`,
    hint: 'check the address',
  });
}
