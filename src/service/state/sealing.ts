import { openSealedBytes, sealBytes } from '../../base/digest.ts';
import { IntegrityError } from '../../base/errors.ts';
import { isObject } from '../../base/lists.ts';
import type { Json } from '../../base/text/json.ts';
import { decode, ifFaultless } from '../../shape/decode.ts';
import type { Row } from './backend.ts';
import { openFormerText, type KeyRing } from './keys.ts';
import { FORMER_BODIES, type Collection, type RecordHead, type StoredRecord } from './state.ts';

/* Owns the encryption of records: all of a body, with its tenant's key, bound to its place. */

/** Encrypts a record for its tenant, id and revision: it opens at no other place. */
export async function sealRecord(
  ring: KeyRing,
  collection: Collection,
  { body, ...head }: StoredRecord,
): Promise<Row> {
  const key = await ring.ofTenant(head.tenant);
  const bytes = sealBytes(Buffer.from(JSON.stringify(body)), key, boundTo(collection, head));
  const { tenant, revision, parent } = head;
  return {
    tenant,
    revision,
    ...(parent !== undefined && { parent }),
    body: JSON.stringify({ encrypted: bytes.toString('base64') }),
  };
}

export async function openRow(
  ring: KeyRing,
  collection: Collection,
  { id, row }: { readonly id: string; readonly row: Row },
): Promise<Json> {
  const stored = parseJson(row.body);
  const head = { id, ...row };
  if (!isEncrypted(stored)) return openFormer(ring, collection, { id, stored });
  const key = await ring.ofTenant(row.tenant);
  const bytes = Buffer.from(stored.encrypted, 'base64');
  const plain = openSealedBytes(bytes, key, boundTo(collection, head));
  if (!plain) throw damagedRecord(collection, id);
  return JSON.parse(plain.toString('utf8')) as Json;
}

/** True for the first format, in which most of a body is readable. */
export const isFormer = ({ body }: Row): boolean => !isEncrypted(parseJson(body));

/** Id of the cluster that an InfraEnv of the first format is bound to. */
export function parentOfFormer({ body }: Row): string | undefined {
  const stored = parseJson(body);
  const id = isObject(stored) ? stored['cluster_id'] : undefined;
  return typeof id === 'string' ? id : undefined;
}

/** True if a body is one of the first format, so that it can be read. */
export const isReadableFormer = (collection: Collection, { body }: Row): boolean =>
  ifFaultless(decode(FORMER_BODIES[collection], parseJson(body))) !== undefined;

export const damagedRecord = (collection: Collection, id: string): IntegrityError =>
  new IntegrityError(
    'service.record-damaged',
    `${NAMES[collection]} ${id} cannot be read: its stored record was changed or lost`,
    { hint: 'delete it, or restore it from a backup' },
  );

const NAMES: Readonly<Record<Collection, string>> = {
  'clusters': 'cluster',
  'infra-envs': 'infra env',
  'image-urls': 'URLs of infra env',
};

/** NIST SP 800-38D 5.1.1: additional authenticated data. */
const boundTo = (collection: Collection, { tenant, id, revision, parent }: RecordHead): string =>
  JSON.stringify(['sealift record', collection, tenant, id, revision, parent ?? null]);

const isEncrypted = (stored: unknown): stored is { readonly encrypted: string } =>
  isObject(stored) && typeof stored['encrypted'] === 'string';

function openFormer(
  ring: KeyRing,
  collection: Collection,
  { id, stored }: { readonly id: string; readonly stored: unknown },
): Json {
  const body = ifFaultless(decode(FORMER_BODIES[collection], stored));
  if (body === undefined) throw damagedRecord(collection, id);
  if (collection === 'clusters') return body;
  const { sealed, ...others } = body as { readonly sealed: string };
  const text = openFormerText(ring, sealed, `InfraEnv ${id}`);
  if (text === undefined) throw damagedRecord(collection, id);
  return { ...(JSON.parse(text) as object), ...others };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
