import { IntegrityError } from '../base/errors.ts';
import { formatCanonicalJson } from '../base/text/json.ts';
import {
  decode,
  decodeJson,
  JSON_RULES,
  requireDecoded,
  type Finding,
  type Path,
  type Rules,
} from '../shape/decode.ts';
import { FREE, LEFT_OUT, record, TEXT } from '../shape/shape.ts';
import { DOCUMENT, type File, type IgnitionConfig } from './schema.ts';

/** Largest number of problems that an error lists. */
const SHOWN = 20;

export type IgnitionVersion = typeof IGNITION_VERSION | '3.6.0';

/** The version of everything we render. */
export const IGNITION_VERSION = '3.2.0';

/** Older ones are subsets of the newest, so one reader takes them all. */
const READABLE_VERSIONS: readonly string[] = [
  '3.0.0',
  '3.1.0',
  IGNITION_VERSION,
  '3.3.0',
  '3.4.0',
  '3.5.0',
  '3.6.0',
];

/**
 * Reads a configuration; `name` is its name in errors. Members with the value null are dropped: Ignition takes
 * them as absent. Members that its version does not know are kept (`findIgnitionWarnings` names them). The
 * text never appears in an error, because it carries secrets.
 *
 * @param newest the newest version that is accepted; what others put on a medium may have any of 3.0 to 3.6
 * @throws IntegrityError `ignition.malformed`, `ignition.version`
 */
export function parseIgnition(
  text: string,
  name: string,
  newest: IgnitionVersion = '3.6.0',
): IgnitionConfig {
  const value = requireDecoded(decodeJson(FREE, text, RULES), ([{ why = '' }]) =>
    malformed(`${name} ${why}`),
  );
  const version = decode(VERSIONED, value).value?.ignition.version;
  if (version === undefined) throw malformed(`${name} has no ignition.version`);
  if (!READABLE_VERSIONS.includes(version) || version > newest) {
    throw new IntegrityError('ignition.version', `${name} has Ignition version "${version}"`, {
      expected: READABLE_VERSIONS.filter((readable) => readable <= newest).join(', '),
      found: version,
      hint: `use a configuration of Ignition specification 3.0 to ${newest.slice(0, 3)}`,
    });
  }
  const config = requireDecoded(decode(DOCUMENT, value, RULES), (findings) => {
    const shown = findings.slice(0, SHOWN).map(describeWrong).join('; ');
    const more = findings.length > SHOWN ? `; and ${findings.length - SHOWN} more` : '';
    return malformed(`${name} is malformed: ${shown}${more}`);
  });
  // Objects with a prototype: configs are compared with ours, which have one.
  return structuredClone(config);
}

/** Compact JSON with sorted keys: equal configurations give equal bytes. */
export function formatIgnition(config: IgnitionConfig): string {
  return formatCanonicalJson(config);
}

/** A file owned by root that replaces any existing file; its content is a `data:` URL. */
export function textFile(path: string, content: string | Uint8Array, mode: number): File {
  const base64 = Buffer.from(content).toString('base64');
  const source = base64 === '' ? 'data:,' : `data:text/plain;charset=utf-8;base64,${base64}`;
  return { path, overwrite: true, user: { name: 'root' }, contents: { source }, mode };
}

/** As in Ignition: null means absent. Bounds far beyond any config; a value takes more memory than its text. */
const RULES: Rules = {
  ...JSON_RULES,
  null: 'absent',
  most: { values: 500_000, depth: 250 },
  repeated: 'refused',
};

const VERSIONED = record({ ignition: record({ version: TEXT }, LEFT_OUT) }, LEFT_OUT);

const malformed = (message: string): IntegrityError =>
  new IntegrityError('ignition.malformed', message);

/** The fault of a value, in the words of ignition-validate. */
function describeWrong({ path, code, shape }: Finding): string {
  const place = (steps: Path): string => ['$', ...steps].join('.');
  if (code === 'missing') return `${place(path.slice(0, -1))} has no ${path.at(-1) ?? ''}`;
  return `${place(path)} is not ${NAMES[shape.kind] ?? 'a string'}`;
}

const NAMES: Readonly<Record<string, string>> = {
  record: 'an object',
  list: 'an array',
  integer: 'an integer',
  flag: 'a boolean',
};
