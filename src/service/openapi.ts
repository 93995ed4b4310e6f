import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import { readFileSync } from 'node:fs';
import { PACKAGE_ROOT } from '../base/program.ts';

/* Owns the OpenAPI document, the check of bodies against it, and the format of errors. */

/** Names of the schemas that bodies are checked against. */
export type BodySchema =
  'disconnected-cluster-create-params' | 'infra-env-create-params' | 'infra-env-update-params';

export type OpenApi = {
  /** The served document: all answers in progress share these bytes. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** @throws ApiFailure 422 */
  readonly check: (schema: BodySchema, body: unknown) => void;
};

/** A failed request: a status, and a reason that the client may read. */
export class ApiFailure extends Error {
  readonly status: number;

  constructor(status: number, reason: string, cause?: unknown) {
    super(reason, cause === undefined ? undefined : { cause });
    this.status = status;
  }
}

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
  ajv.addSchema(JSON.parse(Buffer.from(bytes).toString('utf8')) as object, 'service');
  const compiled = new Map<BodySchema, ValidateFunction>();
  return {
    bytes,
    check(schema, body) {
      const validate =
        compiled.get(schema) ?? ajv.compile({ $ref: `service#/components/schemas/${schema}` });
      compiled.set(schema, validate);
      if (!validate(body)) throw new ApiFailure(422, explain(validate.errors?.[0]));
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

/** Converts an architecture; like assisted-service, it also accepts Go's name for one of them. */
export function toArchitecture(text: unknown): string | undefined {
  const name = text === 'arm64' ? 'aarch64' : text;
  return ARCHITECTURES.find((each) => each === name);
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
