import { readFileSync } from 'node:fs';
import { Ajv, type ValidateFunction } from 'ajv';

type EventSchema = {
  readonly oneOf: readonly { readonly properties: Readonly<Record<string, object>> }[];
};

export const EVENT_SCHEMA = JSON.parse(
  readFileSync(new URL('../../schema/events.schema.json', import.meta.url), 'utf8'),
) as EventSchema;

let validate: ValidateFunction | undefined;

/** Fails for what is no event of the schema, or has a member that the schema does not have. */
export function requireEvent(event: unknown): void {
  validate ??= new Ajv({ formats: { 'date-time': /^\d{4}-\d\d-\d\dT[\d:.]+Z$/ } }).compile({
    ...EVENT_SCHEMA,
    oneOf: EVENT_SCHEMA.oneOf.map((one) => ({ ...one, additionalProperties: false })),
  });
  if (validate(event)) return;
  const { type } = event as { readonly type?: unknown };
  const about = (validate.errors ?? []).map(({ schemaPath, message, params }) =>
    [schemaPath, message, JSON.stringify(params)].join(' '),
  );
  throw new Error(
    `the schema of events does not have this one, ${String(type)}: ${about.join('; ')}`,
  );
}

/** The same for every line that a program wrote to stderr or to its log and that is an event. */
export function requireEvents(printed: string): string {
  for (const line of printed.split('\n')) {
    if (!/^\{.*"type":"/.test(line) || !line.endsWith('}')) continue;
    requireEvent(JSON.parse(line));
  }
  return printed;
}
