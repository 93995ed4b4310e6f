import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { parseMacAddress } from '../base/mac-address.ts';
import { PACKAGE_ROOT } from '../base/program.ts';
import { UUID } from '../base/uuid.ts';
import { toRpmName } from '../openshift/release/bundle.ts';
import { readJsonText, TYPED_JSON } from '../shape/json-text.ts';
import { isCutOffJson, readAsGo, type BodySchemaNode } from './go-body.ts';

/* Owns the OpenAPI document, the check of bodies against it, and the format of errors. */

/** Bodies by the name of their schema: assisted-service's names of the parameter and of its struct. */
const BODIES = {
  'disconnected-cluster-create-params': ['newClusterParams', 'DisconnectedClusterCreateParams'],
  'infra-env-create-params': ['infraenvCreateParams', 'InfraEnvCreateParams'],
  'infra-env-update-params': ['infraEnvUpdateParams', 'InfraEnvUpdateParams'],
  'host-create-params': ['newHostParams', 'HostCreateParams'],
  'image-url-create-params': ['imageUrlCreateParams', 'ImageUrlCreateParams'],
  // The page has the others.
  'form-check-params': ['form', 'Form'],
  'networks-read-params': ['networks', 'Networks'],
  'host-table-params': ['table', 'Table'],
} as const;

export type BodySchema = keyof typeof BODIES;

export type OpenApi = {
  /** The served document: all answers in progress share these bytes. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly read: (schema: BodySchema, body: Uint8Array) => unknown;
  /** Checks a value in assisted-service's words; returns it without null members, with the schema's names. */
  readonly check: (schema: BodySchema, value: unknown) => unknown;
};

/** A failed request: a status, and a reason that the client may read. */
export class ApiFailure extends Error {
  readonly status: number;

  constructor(status: number, reason: string, cause?: unknown) {
    super(reason, cause === undefined ? undefined : { cause });
    this.status = status;
  }
}

/** A request by a method that its path does not have. */
export class WrongMethod extends ApiFailure {
  /** Value of `Allow`. */
  readonly allow: string;

  constructor(method: string, allowed: readonly string[]) {
    super(405, `method ${method} is not allowed, but [${allowed.join(',')}] are`);
    this.allow = allowed.join(', ');
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
  readonly message: string;
};

/** Refuses a record that does not exist, or that belongs to another tenant. */
export const notFound = (): ApiFailure => new ApiFailure(404, 'record not found');

/** Another way to write a UUID, which assisted-service takes and finds no record for. */
const OTHER_UUID = /^\{?[0-9a-f]{8}(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12}\}?$/i;

export function readOpenApi(): OpenApi {
  const bytes = new Uint8Array(readFileSync(new URL('schema/service.openapi.json', PACKAGE_ROOT)));
  const ajv = new Ajv({
    meta: false,
    validateSchema: false,
    strict: false,
    verbose: true,
    code: { regExp: compilePattern },
  });
  ajv.addFormat('uuid', UUID);
  ajv.addFormat('mac', (text) => parseMacAddress(text) !== undefined);
  const document = JSON.parse(Buffer.from(bytes).toString('utf8')) as OpenApiDocument;
  ajv.addSchema(document, 'service');
  const { schemas } = document.components;
  const compiled = new Map<BodySchema, ValidateFunction>();
  const resolve = (schema: BodySchemaNode): BodySchemaNode =>
    schema.$ref === undefined ? schema : (schemas[basename(schema.$ref)] ?? {});
  const check: OpenApi['check'] = (name, value) => {
    const [, struct] = BODIES[name];
    const given = { resolve, struct, refuse: (why: string) => refuseBody(name, why) };
    const body = readAsGo(value, schemas[name] ?? {}, given) ?? {};
    const validate =
      compiled.get(name) ?? ajv.compile({ $ref: `service#/components/schemas/${name}` });
    compiled.set(name, validate);
    if (!validate(body)) throw new ApiFailure(400, explain(validate.errors?.[0]));
    return body;
  };
  return { bytes, check, read: (name, text) => check(name, parseBody(name, text)) };
}

const refuseBody = (name: BodySchema, why: string): ApiFailure =>
  new ApiFailure(400, `parsing ${BODIES[name][0]} body from "" failed, because ${why}`);

/** Parses a body; the last of two members counts, as in Go. */
function parseBody(name: BodySchema, text: Uint8Array): unknown {
  if (text.length === 0) throw new ApiFailure(400, `${BODIES[name][0]} in body is required`);
  const read = readJsonText(text, { most: TYPED_JSON.most });
  if (read.why === undefined) return read.value;
  const isCut = isCutOffJson(Buffer.from(text).toString());
  throw refuseBody(name, isCut ? 'unexpected EOF' : `it ${read.why}`);
}

/** Kernel arguments, some or none. Go's expression takes linear time; the same takes exponential time here. */
const ARGUMENTS = {
  written: String.raw`^(?:(?:[^ \t\n\r"]+)|(?:"[^"]*"))*$`,
  same: String.raw`^(?:[^ \t\n\r"]|"[^"]*")*$`,
  /** assisted-service does not look at an empty one. */
  shown: String.raw`^(?:(?:[^ \t\n\r"]+)|(?:"[^"]*"))+$`,
};

const compilePattern = Object.assign(
  (pattern: string, flags: string) =>
    new RegExp(pattern === ARGUMENTS.written ? ARGUMENTS.same : pattern, flags),
  { code: 'new RegExp' },
);

/** Requires a UUID as records have it. */
export function requireUuid(text: string, name: string, where = 'path'): string {
  if (UUID.test(text) && text === text.toLowerCase()) return text;
  if (OTHER_UUID.test(text)) throw notFound();
  throw new ApiFailure(400, `${name} in ${where} must be of type uuid: ${quote(text)}`);
}

const LONGEST_QUOTED = 100;

const quote = (text: unknown): string => JSON.stringify(String(text).slice(0, LONGEST_QUOTED));

/** Architectures in RPM's spelling, which assisted-service uses as well. */
export const ARCHITECTURES = ['x86_64', 'aarch64', 'ppc64le', 's390x'] as const;

/** Converts an architecture, which may have Go's name. */
export function toArchitecture(text: unknown): string | undefined {
  const name = typeof text === 'string' ? toRpmName(text) : undefined;
  return ARCHITECTURES.find((each) => each === name);
}

type OpenApiDocument = {
  readonly components: { readonly schemas: Readonly<Record<string, BodySchemaNode>> };
};

/** Other names of values; lists of what is possible do not have them. */
const ALIASES: readonly unknown[] = ['', 'amd64', null];

/** Formats the rule that a value breaks, by the keyword of the schema. */
const RULES: Readonly<Record<string, (error: ErrorObject) => string>> = {
  minLength: ({ schema }) => `should be at least ${String(schema)} chars long`,
  maxLength: ({ schema }) => `should be at most ${String(schema)} chars long`,
  maxItems: ({ schema }) => `should have at most ${String(schema)} items`,
  minimum: ({ schema }) => `should be greater than or equal to ${String(schema)}`,
  pattern: ({ schema }) =>
    `should match '${schema === ARGUMENTS.written ? ARGUMENTS.shown : String(schema)}'`,
  enum: ({ schema }) =>
    `should be one of [${(schema as unknown[]).filter((each) => !ALIASES.includes(each)).join(' ')}]`,
  format: ({ schema, data }) =>
    schema === 'uuid' ? `must be of type uuid: ${quote(data)}` : `should match '${MAC}'`,
};

/** The form that assisted-service requires; others are read here as well. */
const MAC = '^([0-9A-Fa-f]{2}[:]){5}([0-9A-Fa-f]{2})$';

/** Explains a schema error, in assisted-service's words; the values of no other rule are quoted. */
function explain(error: ErrorObject | undefined): string {
  if (!error) return 'the body is not valid';
  const path = error.instancePath.slice(1).replaceAll('/', '.');
  if (error.keyword === 'required') {
    const { missingProperty } = error.params as { missingProperty: string };
    return `${[path, missingProperty].filter((part) => part !== '').join('.')} in body is required`;
  }
  return `${path} in body ${RULES[error.keyword]?.(error) ?? error.message ?? 'is not valid'}`;
}
