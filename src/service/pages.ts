import { withoutUndefined } from '../base/lists.ts';
import { addWarnings, type Exchange, type Service } from './context.ts';
import { ApiFailure } from './openapi.ts';
import type { Collection, StoredRecord } from './state/state.ts';

/* Owns lists in pages: `limit` and `after` of a request, and the Link to the next page. */

type Listed = {
  readonly collection: Collection;
  readonly tenant: string;
  readonly parent?: string | undefined;
};

/** A header `Link` (RFC 8288) names the next page, if there is one, and a warning the unreadable records. */
export async function listPage(
  service: Service,
  exchange: Exchange,
  { collection, tenant, parent }: Listed,
): Promise<readonly StoredRecord[]> {
  const { limit, after } = exchange.req.query();
  if (limit !== undefined && !/^[1-9]\d{0,5}$/.test(limit)) {
    throw new ApiFailure(400, 'limit in query must be a number from 1 on');
  }
  const { records, damaged, next } = await service.state.list(collection, {
    tenant,
    ...withoutUndefined({ parent, after, limit: limit === undefined ? limit : Number(limit) }),
  });
  if (next !== undefined) {
    const url = new URL(exchange.req.url);
    url.searchParams.set('after', next);
    exchange.header('Link', `<${url.pathname}${url.search}>; rel="next"`);
  }
  addWarnings(
    service,
    exchange,
    damaged.map((id) => `${id} cannot be read: delete it, or restore it from a backup`),
  );
  return records;
}
