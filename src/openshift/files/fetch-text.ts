import { IntegrityError, RegistryError } from '../../base/errors.ts';
import type { Http, HttpResponse } from '../../base/http/http.ts';
import { redactUrl } from '../../base/text/redact.ts';
import { fetchPublic, readLimited, type GetOptions } from './http-get.ts';

/**
 * A public document of at most `limit` bytes, as text.
 *
 * @throws IntegrityError `download.too-large`; RegistryError `download.refused`, and what `fetchPublic`
 * throws
 */
export function fetchText(
  http: Http,
  options: GetOptions & { readonly limit: number },
): Promise<string> {
  const { url, signal, limit } = options;
  return http.retries.run({ host: url.host, signal }, async () => {
    const response = await fetchPublic(http, options);
    if (response.status === 200) return readText(response, url, limit);
    response.body.destroy();
    throw new RegistryError('download.refused', `${redactUrl(url)} answers ${response.status}`, {
      expected: '200',
      found: String(response.status),
      hint: 'check the address; it must be public',
    });
  });
}

async function readText(response: HttpResponse, url: URL, limit: number): Promise<string> {
  const text = (await readLimited(response, url, limit))?.toString('utf8');
  if (text !== undefined) return text;
  throw new IntegrityError('download.too-large', `${redactUrl(url)} has more than ${limit} bytes`, {
    expected: `at most ${limit}`,
    found: `more than ${limit}`,
    hint: 'check the address',
  });
}
