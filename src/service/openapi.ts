import { readFileSync } from 'node:fs';
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import { PACKAGE_ROOT } from '../base/program.ts';
import { ApiFailure } from './api-failure.ts';

/** The names of the schemas that bodies are checked against. */
export type BodySchema =
  'disconnected-cluster-create-params' | 'infra-env-create-params' | 'infra-env-update-params';

export type OpenApi = {
  /** The document itself, as it is served: the same bytes for all answers that are on their way. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** @throws ApiFailure 422 */
  readonly check: (schema: BodySchema, body: unknown) => void;
};

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

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** @throws ApiFailure 422 */
export function requireUuid(text: string, name: string): string {
  if (UUID.test(text)) return text.toLowerCase();
  throw new ApiFailure(422, `${name} in path must be of type uuid`);
}

/** Values are left out: they may be secrets. */
function explain(error: ErrorObject | undefined): string {
  const path = (error?.instancePath ?? '').slice(1).replaceAll('/', '.');
  if (error?.keyword === 'required') {
    const { missingProperty } = error.params as { missingProperty: string };
    return `${[path, missingProperty].filter((part) => part !== '').join('.')} in body is required`;
  }
  return `${path === '' ? 'the body' : `${path} in body`} ${error?.message ?? 'is not valid'}`;
}
