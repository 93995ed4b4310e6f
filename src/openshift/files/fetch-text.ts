import type { Http, HttpResponse } from '../../base/http/http.ts';
import { fetchPublic, readLimited, refused, tooLarge, type GetOptions } from './http-get.ts';

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
    throw refused(url, response.status);
  });
}

async function readText(response: HttpResponse, url: URL, limit: number): Promise<string> {
  const text = (await readLimited(response, url, limit))?.toString('utf8');
  if (text !== undefined) return text;
  throw tooLarge(url, limit, `more than ${limit}`);
}
