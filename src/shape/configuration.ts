import { readFileSync } from 'node:fs';
import type { DocumentProblem } from '../base/errors.ts';
import { PACKAGE_ROOT } from '../base/program.ts';
import { findNearestName, suggestName } from '../base/text/words.ts';
import { joinPath } from './decode-yaml.ts';
import { decode, formatSteps, YAML_RULES, type Finding } from './decode.ts';
import { readYaml, UNKNOWN_KEY, type ConfigDocument, type TextSource } from './document.ts';
import { maskUserInfo, type ReportDetails } from './report.ts';
import { coreOf, listMemberNames, shapeOf, type Plain, type Shape } from './shape.ts';

/* Owns configurations: they are read along a shape, and its findings have words of their own. */

/**
 * The schemas that ship with the program, by the documents that they describe. `init` writes each
 * at the same path next to the file that it begins, so that editors find it on every machine.
 */
export const SCHEMA = {
  appliance: 'schema/appliance-config.schema.json',
  installation: 'schema/image-based-installation-config.schema.json',
  site: 'schema/site.schema.json',
} as const;

type SchemaPath = (typeof SCHEMA)[keyof typeof SCHEMA];

export const readSchemaText = (path: SchemaPath): string =>
  readFileSync(new URL(path, PACKAGE_ROOT), 'utf8');

/** The line that names the schema of a YAML file for editors; the path is relative to the file. */
export const formatModeline = (path: string): string => `# yaml-language-server: $schema=${path}\n`;

/** The name of every key on any level, in lower case. */
export const listKeys = (shape: Shape): ReadonlySet<string> =>
  new Set(listMemberNames(shape).map((name) => name.toLowerCase()));

/** Reads a document along a shape, as plain data that must be checked afterwards. */
export const readConfiguration = (
  source: Omit<TextSource, 'publicKeys'> & Partial<TextSource>,
  shape: Shape,
): ConfigDocument => readYaml({ publicKeys: listKeys(shape), ...source }, shape);

/** Last members of paths whose values are never shown. */
const SECRET_PATH = /(?:^|\.)(?:pullSecret|sshKey|userCorePass|ignitionConfigOverride)$/;

type CheckOptions = {
  /** Hints for unknown keys that used to have a meaning. */
  readonly hints?: ReadonlyMap<string, string>;
};

const REQUIRED = { code: 'config.required' };

export function checkConfiguration(
  document: ConfigDocument,
  root: Shape,
  { hints = new Map() }: CheckOptions = {},
): readonly DocumentProblem[] {
  return decode(root, document.value, YAML_RULES).findings.map((finding) => {
    const path = formatSteps(finding.path);
    const shown = findWritten(finding, document.writtenOf(path));
    return document.report(path, ...explain({ ...finding, found: shown }, path, { root, hints }));
  });
}

/** The value as it is written, if it was not meant as text. */
const findWritten = ({ shape, found }: Finding, written: string | undefined): unknown =>
  coreOf(shape).kind === 'flag' ? (written ?? found) : found;

type About = { readonly root: Shape; readonly hints: ReadonlyMap<string, string> };

function explain(finding: Finding, path: string, about: About): [string, ReportDetails] {
  const { code, shape, found } = finding;
  if (code === 'missing' || isEmpty(finding)) return ['is required', REQUIRED];
  if (code === 'unknown') {
    const key = String(finding.path.at(-1));
    const known = shape.kind === 'record' ? Object.keys(shape.members) : [];
    const hint = about.hints.get(key) ?? suggestKey(key, known, about.root);
    return ['no such key', { code: UNKNOWN_KEY, hint, hideValue: true }];
  }
  const shown = path === '' || SECRET_PATH.test(path) ? '' : `, but is ${show(found as Plain)}`;
  return [
    `${code === 'type' ? `must be ${nameType(shape)}` : describeRule(shape)}${shown}`,
    { code: 'config.schema', hint: hintFor(finding, path) },
  ];
}

/** True for an empty text in a place that needs a text, which reads better as missing. */
const isEmpty = ({ shape, found }: Finding): boolean =>
  shape.kind === 'text' && shape.isFilled === true && found === '';

function describeRule(shape: Shape): string {
  if (shape.kind === 'integer') return describeRange(shape);
  if (shape.kind === 'text') return `must match ${shape.pattern?.source ?? ''}`;
  if (shape.kind !== 'choice') return 'must not have an item twice';
  const words = shape.words.map((word) => `"${word}"`).join(', ');
  return `must be ${shape.words.length === 1 ? '' : 'one of '}${words}`;
}

function describeRange({ least = 0, most }: { readonly least?: number; readonly most?: number }) {
  return most === undefined ? `must be at least ${least}` : `must be between ${least} and ${most}`;
}

function hintFor({ code, shape, found }: Finding, path: string): string | undefined {
  if (code === 'type' && path.endsWith('ullSecret')) {
    return 'put the JSON in single quotes, or write file:PATH or env:NAME';
  }
  if (shape.kind === 'text' && code === 'value') return shape.description;
  if (shape.kind !== 'choice' || typeof found !== 'string') return undefined;
  const near = shape.words.length > 1 ? findNearestName(found, shape.words.map(String)) : undefined;
  return near === undefined ? undefined : `write "${near}"`;
}

/** Likely meanings of an unknown key: a key next to it, or one of another level. */
export const suggestKey = (
  key: string,
  known: readonly string[],
  root: Shape,
): string | undefined => suggestName(key, known) ?? findPlace(key, root);

function findPlace(key: string, root: Shape): string | undefined {
  const place = findPath(key.toLowerCase(), root, '');
  return place === undefined ? undefined : `"${key}" belongs at ${place}`;
}

function findPath(key: string, shape: Shape, path: string): string | undefined {
  const core = coreOf(shape);
  if (core.kind === 'list') return findPath(key, core.of, `${path}[]`);
  if (core.kind !== 'record') return undefined;
  for (const [name, member] of Object.entries(core.members)) {
    const place = joinPath(path, name);
    if (name.toLowerCase() === key) return place;
    const deeper = findPath(key, shapeOf(member), place);
    if (deeper !== undefined) return deeper;
  }
  return undefined;
}

const nameType = ({ kind }: Shape): string => TYPES[kind] ?? 'a string';

const TYPES: Readonly<Record<string, string>> = {
  record: 'a mapping',
  mapping: 'a mapping',
  list: 'a list',
  flag: 'true or false',
  integer: 'a whole number',
};

function show(value: Plain): string {
  if (typeof value === 'string') return `"${maskUserInfo(value).slice(0, 80)}"`;
  if (Array.isArray(value)) return 'a list';
  return value !== null && typeof value === 'object' ? 'a mapping' : String(value);
}
