import { UsageError, type DocumentProblem } from '../base/errors.ts';
import type { Redaction } from '../base/text/redact.ts';
import { findMember, joinPath, type ValueCount } from '../shape/decode-yaml.ts';
import { type ConfigDocument, readPath, UNKNOWN_KEY } from '../shape/document.ts';
import { readConfiguration, listKeys, suggestKey } from '../shape/configuration.ts';
import type { Setting } from '../shape/merge-documents.ts';
import { FREE, shapeOf, type Shape } from '../shape/shape.ts';
import { APPLIANCE } from './appliance-shape.ts';
import { isReference, SECRET_PATHS } from './secrets.ts';

/**
 * Reads `--set PATH=VALUE`; the value is a YAML scalar or flow collection. Columns in problems count from
 * the start of the option's text.
 */
export function readSetting(
  text: string,
  { count, redaction }: { readonly count: ValueCount; readonly redaction: Redaction },
): Setting {
  const { path, value } = splitSetting(text);
  const place = resolvePlace(path);
  const { steps, shape } = place;
  const canonical = steps.reduce<string>(joinStep, '');
  const isSecret = SECRET_PATHS.some((secret) => `${secret}.`.startsWith(`${canonical}.`));
  const document = readConfiguration(
    {
      // Padded, so that the value keeps its column in the option.
      text: `${' '.repeat(path.length + 1)}${value}`,
      file: nameSetting(text),
      publicKeys: listKeys(APPLIANCE),
      path: canonical,
      count,
      shownLines: isSecret || place.unknown ? [`${path}=[redacted]`] : text.split('\n'),
    },
    shape,
  );
  const { report } = document;
  const problems = [
    // A syntax error has an offset but no path.
    ...document.problems.map((fault) =>
      fault.path === '' ? { ...fault, path: canonical } : fault,
    ),
    ...(place.unknown ? [report(canonical, 'no such key', place.unknown)] : []),
    ...refuseSecrets(document, redaction),
    ...refuseComment(value, document),
  ];
  return { document: { ...document, problems }, steps };
}

export const nameSetting = (text: string): string => `--set ${text.replace(/=.*/s, '')}`;

const SETTING = /^(?<path>[^=\s]*)=(?<value>.*)$/s;
const PATH = /^[\w-]+(?:\.[\w-]+|\[\d{1,5}\])*$/;

function splitSetting(text: string): { readonly path: string; readonly value: string } {
  const { path = '', value = '' } = SETTING.exec(text)?.groups ?? {};
  const expected =
    'PATH=VALUE, as in --set build.concurrency=4 or --set "operators[0].catalog=..."';
  // Text of any other form may be a secret, so the message does not repeat it.
  if (!PATH.test(path)) throw new UsageError('usage.set', '--set has no path', { expected });
  if (value.trim() === '') {
    const hint = `write a value, or --set ${path}=null to remove the value of the files`;
    throw new UsageError('usage.set', `--set ${path} has no value`, { expected, hint });
  }
  return { path, value };
}

type Place = {
  readonly steps: readonly (string | number)[];
  readonly shape: Shape;
  /** Code and hint of the problem, if no configuration has the path. */
  readonly unknown?: { readonly code: string; readonly hint: string | undefined };
};

/** Walks the shape along a path. Names match without regard to case, as in files. */
function resolvePlace(path: string): Place {
  const steps: (string | number)[] = [];
  let shape: Shape = APPLIANCE;
  for (const [, name = '', index] of path.matchAll(/([\w-]+)|\[(\d+)\]/g)) {
    const { step, below } =
      index === undefined ? stepToMember(shape, name) : stepToItem(shape, index);
    steps.push(step);
    if (below === undefined) {
      const known = shape.kind === 'record' ? Object.keys(shape.members) : [];
      const hint = suggestKey(name, known, APPLIANCE);
      return { steps, shape: FREE, unknown: { code: UNKNOWN_KEY, hint } };
    }
    shape = below;
  }
  return { steps, shape };
}

type Step = { readonly step: string | number; readonly below: Shape | undefined };

function stepToMember(shape: Shape, name: string): Step {
  if (shape.kind !== 'record') return { step: name, below: isFree(shape) ? FREE : undefined };
  const step = findMember(shape.members, name) ?? name;
  const member = Object.hasOwn(shape.members, step) ? shape.members[step] : undefined;
  return { step, below: member && shapeOf(member) };
}

function stepToItem(shape: Shape, index: string): Step {
  const below = shape.kind === 'list' ? shape.of : isFree(shape) ? FREE : undefined;
  return { step: Number(index), below };
}

const isFree = ({ kind }: Shape): boolean => kind === 'free' || kind === 'mapping';

const joinStep = (path: string, step: string | number): string =>
  typeof step === 'number' ? `${path}[${step}]` : joinPath(path, step);

/** Refuses secrets: every user of a machine can read the arguments of every process. */
function refuseSecrets(
  { value, path, report }: ConfigDocument,
  redaction: Redaction,
): readonly DocumentProblem[] {
  return SECRET_PATHS.flatMap((secret) => {
    if (!`${secret}.`.startsWith(`${path}.`)) return [];
    const text = readPath(value, secret.slice(path.length));
    if (typeof text !== 'string' || text === '' || isReference(text)) return [];
    if (secret === 'sshKey' && !text.includes('PRIVATE KEY')) return [];
    redaction.add(text);
    const hint = 'write env:NAME or file:PATH';
    return [report(secret, 'is a secret, and the process list would show it', { hint })];
  });
}

/** Refuses a comment, which YAML would drop silently. */
function refuseComment(
  value: string,
  { path, report }: ConfigDocument,
): readonly DocumentProblem[] {
  if (!/^\s*#|^[^"'[{]*\s#/.test(value)) return [];
  const hint = 'put the value in double quotes, inside the quotes of the shell';
  return [report(path, 'the text after " #" would be a comment', { hint })];
}
