import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { parseMacAddress } from '../base/mac-address.ts';
import { PACKAGE_ROOT } from '../base/program.ts';
import { isObject } from '../base/lists.ts';
import { appendSuggestion } from '../base/text/words.ts';
import { toRpmName } from '../openshift/release/bundle.ts';

/* Owns the OpenAPI document, the check of bodies against it, and the format of errors. */

/** Names of the schemas that bodies are checked against. */
export type BodySchema =
  | 'disconnected-cluster-create-params'
  | 'infra-env-create-params'
  | 'infra-env-update-params'
  | 'image-url-create-params'
  | 'form-check-params'
  | 'networks-read-params'
  | 'host-table-params';

export type OpenApi = {
  /** The served document: all answers in progress share these bytes. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /**
   * Checks a body.
   *
   * @returns warnings of members that nothing reads; assisted-service ignores them as well
   * @throws ApiFailure 422
   */
  readonly check: (schema: BodySchema, body: unknown) => readonly string[];
};

/** A failed request: a status, and a reason that the client may read. */
export class ApiFailure extends Error {
  readonly status: number;

  constructor(status: number, reason: string, cause?: unknown) {
    super(reason, cause === undefined ? undefined : { cause });
    this.status = status;
  }
}

/** A problem of one value, for the form in which a person typed it. */
export type FieldProblem = {
  /** Member of the request: `proxy.http_proxy`, `static_network_config[0].network_yaml`. */
  readonly field: string;
  /** Line and column in a value of several lines, from 1. */
  readonly line?: number;
  readonly column?: number;
  /** Member of a network document: `interfaces[0].mtu`. */
  readonly path?: string;
  /** A sentence. */
  readonly message: string;
};

/** Formats an error in assisted-service's format; authentication errors have another format. */
export const formatFailure = ({ status, message }: ApiFailure): object =>
  status === 401 || status === 403
    ? { code: status, message }
    : { kind: 'Error', id: status, href: '', code: String(status), reason: message };

export const notFound = (what: string, id: string): ApiFailure =>
  new ApiFailure(404, `${what} ${id} not found`);

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export function readOpenApi(): OpenApi {
  const bytes = new Uint8Array(readFileSync(new URL('schema/service.openapi.json', PACKAGE_ROOT)));
  const ajv = new Ajv({ meta: false, validateSchema: false, strict: false });
  ajv.addFormat('uuid', UUID);
  ajv.addFormat('mac', (text) => parseMacAddress(text) !== undefined);
  const document = JSON.parse(Buffer.from(bytes).toString('utf8')) as OpenApiDocument;
  ajv.addSchema(document, 'service');
  const compiled = new Map<BodySchema, ValidateFunction>();
  return {
    bytes,
    check(schema, body) {
      const validate =
        compiled.get(schema) ?? ajv.compile({ $ref: `service#/components/schemas/${schema}` });
      compiled.set(schema, validate);
      if (!validate(body)) throw new ApiFailure(422, explain(validate.errors?.[0]));
      const { schemas } = document.components;
      return listUnread(body, schemas[schema] ?? {}, { schemas, path: '' });
    },
  };
}

/** Returns a UUID in lower case. @throws ApiFailure 422 */
export function requireUuid(text: string, name: string): string {
  if (UUID.test(text)) return text.toLowerCase();
  throw new ApiFailure(422, `${name} in path must be of type uuid`);
}

/** Architectures in RPM's spelling, which assisted-service uses as well. */
export const ARCHITECTURES = ['x86_64', 'aarch64', 'ppc64le', 's390x'] as const;

/** Converts an architecture, which may have Go's name. */
export function toArchitecture(text: unknown): string | undefined {
  const name = typeof text === 'string' ? toRpmName(text) : undefined;
  return ARCHITECTURES.find((each) => each === name);
}

type Schema = {
  readonly $ref?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
};

type OpenApiDocument = {
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
};

type Reading = { readonly schemas: Readonly<Record<string, Schema>>; readonly path: string };

const MOST_SHOWN = 64;

/** Lists members that no schema has, each with the one that was probably meant. */
function listUnread(
  value: unknown,
  { $ref, ...own }: Schema,
  { schemas, path }: Reading,
): readonly string[] {
  const { properties, items } = $ref === undefined ? own : (schemas[basename($ref)] ?? {});
  const inside = (name: string): string => (path === '' ? name : `${path}.${name}`);
  if (Array.isArray(value) && items) {
    return value.flatMap((each: unknown, at) =>
      listUnread(each, items, { schemas, path: `${path}[${at}]` }),
    );
  }
  if (!isObject(value) || !properties) return [];
  return Object.entries(value).flatMap(([name, member]) => {
    const known = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (known) return listUnread(member, known, { schemas, path: inside(name) });
    const guess = appendSuggestion(name, Object.keys(properties));
    return [`${inside(name.slice(0, MOST_SHOWN))} is not known and is ignored${guess}`];
  });
}

/** Explains a schema error without values, which may be secrets. */
function explain(error: ErrorObject | undefined): string {
  const path = (error?.instancePath ?? '').slice(1).replaceAll('/', '.');
  if (error?.keyword === 'required') {
    const { missingProperty } = error.params as { missingProperty: string };
    return `${[path, missingProperty].filter((part) => part !== '').join('.')} in body is required`;
  }
  return `${path === '' ? 'the body' : `${path} in body`} ${error?.message ?? 'is not valid'}`;
}
