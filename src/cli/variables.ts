import { CommanderError, type Command, type Option } from 'commander';
import { variableOf } from '../base/environment.ts';
import { UsageError } from '../base/errors.ts';
import { withoutUndefined } from '../base/lists.ts';
import { suggestName } from '../base/text/words.ts';
import type { OptionVariables } from './host.ts';
import { addTo } from './options.ts';

/*
 * Owns the variables by which the environment sets options. Every option has one, named by one rule, and the
 * table of all of them is made from the commands themselves: `docs/cli.md` prints it.
 */

const PREFIX = 'SEALIFT_';

/** Commands whose options also hold for the commands below them. */
const OPTIONS_BELOW: ReadonlySet<string> = new Set(['sealift', 'serve']);

/**
 * Options that relax a check, or name what a check trusts. A variable may set them, but never unseen: it is warned
 * of even with --quiet, and reports repeat the warning.
 */
const RELAXING: ReadonlySet<string> = new Set([
  '--accept-restore',
  '--allow-incomplete',
  '--allow-losses',
  '--allow-secrets',
  '--allow-shared',
  '--allow-unsigned',
  '--auth',
  '--auth-audience',
  '--auth-issuer',
  '--auth-keys',
  '--auth-lifetime',
  '--base-iso',
  '--ca-bundle',
  '--config',
  '--coreos-stream',
  '--cors-origin',
  '--drop-built',
  '--expect',
  '--force',
  '--insecure-registry',
  '--medium-digest',
  '--quick',
  '--registries-conf',
  '--sample-seed',
  '--set',
  '--sha256',
  '--signature-keys',
  '--signature-url',
  '--trusted-proxy',
]);

export const isRelaxing = ({ long }: Option): boolean => long !== undefined && RELAXING.has(long);

/** The variable of an option: `--work-dir` is set by `SEALIFT_WORK_DIR`. Hidden options have no variable. */
export const variableNameOf = ({ long, hidden }: Option): string | undefined =>
  !long || hidden || long === '--version'
    ? undefined
    : PREFIX + long.slice('--'.length).toUpperCase().replaceAll('-', '_');

/** True if the option collects values: its variable has one value a line. */
export const isRepeated = ({ variadic, parseArg, description }: Option): boolean =>
  variadic || parseArg === addTo || description.includes('may be repeated');

/** An option, and the command that has it: `build installation-iso`, or empty for all commands. */
export type OptionOfCommand = { readonly command: string; readonly option: Option };

/** The table of variables: the options that each of them sets. */
export function listVariables(
  command: Command,
  path = '',
  table = new Map<string, OptionOfCommand[]>(),
): ReadonlyMap<string, readonly OptionOfCommand[]> {
  for (const option of command.options) {
    const name = variableNameOf(option);
    if (name === undefined) continue;
    table.set(name, [...(table.get(name) ?? []), { command: path, option }]);
  }
  for (const child of command.commands)
    listVariables(child, `${path} ${child.name()}`.trim(), table);
  return table;
}

export function createOptionVariables(env: NodeJS.ProcessEnv): OptionVariables {
  const taken = new Map<string, Option>();
  return {
    take(action) {
      for (const { name, option, command, value } of listSettings(action, env)) {
        command.setOptionValueWithSource(option.attributeName(), value, 'env');
        taken.set(name, option);
      }
      return [...taken.keys()];
    },
    taken: () => [...taken.keys()],
    warnings: () =>
      [...taken]
        .filter(([, option]) => isRelaxing(option))
        .map(([name, { long, description }]) => `${name} sets ${long}: ${description}`),
  };
}

/**
 * Prepares a program for the variables of an environment: an option that must be given may be given there.
 *
 * @param words of the command line; a variable that `env:NAME` names is a secret of any name
 * @returns sentences about variables that no option has
 */
export function admitVariables(
  program: Command,
  { env, words }: { readonly env: NodeJS.ProcessEnv; readonly words: readonly string[] },
): readonly string[] {
  if (!hasVariables(env)) return [];
  const table = listVariables(program);
  for (const [name, options] of table) {
    if (variableOf(env, name) === undefined) continue;
    for (const { option } of options) option.makeOptionMandatory(false);
  }
  const named = new Set(
    [...words, ...[...table.keys()].flatMap((name) => env[name] ?? [])].flatMap((word) =>
      [...word.matchAll(/\benv:(\w+)/g)].map(([, name]) => name),
    ),
  );
  return Object.keys(env)
    .filter((name) => name.startsWith(PREFIX) && !table.has(name) && !named.has(name))
    .map((name) => describeUnknown(name, table.keys()));
}

const hasVariables = (env: NodeJS.ProcessEnv): boolean =>
  Object.keys(env).some((name) => name.startsWith(PREFIX));

const describeUnknown = (name: string, known: Iterable<string>): string =>
  [`no option has the variable ${name}`, suggestName(name, known)]
    .filter((part) => part !== undefined)
    .join('; ');

type Found = {
  readonly name: string;
  readonly text: string;
  readonly option: Option;
  readonly command: Command;
};

type Setting = Found & { readonly value: unknown };

function listSettings(action: Command, env: NodeJS.ProcessEnv): readonly Setting[] {
  if (!hasVariables(env)) return [];
  const commands = listHolders(action);
  const given = commands.flatMap((command) =>
    command.options.filter(
      (option) => command.getOptionValueSource(option.attributeName()) === 'cli',
    ),
  );
  const settings = commands
    .flatMap((command) => command.options.flatMap((option) => findSetting(command, option, env)))
    .filter(({ option }) => !given.some((other) => isExclusive(option, other)))
    .map((found) => ({ ...found, value: parseNamed(found) }))
    .filter(({ value }) => value !== undefined);
  for (const [index, setting] of settings.entries())
    refuseConflict(setting, settings.slice(0, index));
  return settings;
}

/** The command, and the commands above it whose options hold for it too. */
function listHolders(action: Command): readonly Command[] {
  const above: Command[] = [];
  for (let { parent } = action; parent !== null; { parent } = parent) {
    if (OPTIONS_BELOW.has(parent.name())) above.push(parent);
  }
  return [action, ...above];
}

function findSetting(command: Command, option: Option, env: NodeJS.ProcessEnv): readonly Found[] {
  const name = variableNameOf(option);
  const text = name === undefined ? undefined : variableOf(env, name);
  return name === undefined || text === undefined ? [] : [{ name, text, option, command }];
}

/** True if only one of two options can be given: a name and its negation, or as the options themselves declare. */
function isExclusive(one: Option, other: Option): boolean {
  const [name, otherName] = [one.attributeName(), other.attributeName()];
  return (
    name === otherName ||
    (LEVELS.has(name) && LEVELS.has(otherName)) ||
    conflictsOf(one).includes(otherName) ||
    conflictsOf(other).includes(name)
  );
}

/** Flags for the amount of output, which may stand before and after the command's name. */
const LEVELS: ReadonlySet<string> = new Set(['quiet', 'verbose']);

/** Attributes of the options that `conflicts` named; the types of commander leave the member out. */
const conflictsOf = (option: Option): readonly string[] =>
  (option as Option & { readonly conflictsWith: readonly string[] }).conflictsWith;

function refuseConflict({ name, option }: Setting, earlier: readonly Setting[]): void {
  const other = earlier.find((one) => one.name !== name && isExclusive(one.option, option));
  if (other === undefined) return;
  throw new UsageError('usage.conflicting-option', `${other.name} and ${name} exclude each other`, {
    hint: 'unset one of them, or give the option on the command line',
  });
}

/** Reads a value, and names the variable in a refusal. */
function parseNamed(found: Found): unknown {
  const { name, option } = found;
  try {
    return parseVariable(found);
  } catch (error) {
    if (error instanceof CommanderError) {
      const { message } = error;
      throw new UsageError(
        'usage.variable',
        `${name} has no value for ${option.flags}: ${message}`,
      );
    }
    if (!(error instanceof UsageError)) throw error;
    const { code, expected, found: value, hint } = error;
    const details = withoutUndefined({ expected, found: value, hint });
    throw new UsageError(code, `${name} of the environment`, { ...details, cause: error });
  }
}

/** Undefined if a flag is not set. */
function parseVariable({ name, text, option }: Found): unknown {
  if (!option.required) {
    const flag = FLAGS.get(text.toLowerCase());
    if (flag !== undefined) return flag ? !option.negate : undefined;
    if (!option.optional) throw refuseFlag(name, option);
  }
  const values = isRepeated(option) ? text.split(/\r?\n/).filter((line) => line !== '') : [text];
  const start: unknown = option.defaultValue;
  return values.reduce((earlier, value) => parseOne(option, value, earlier), start);
}

const FLAGS: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['false', false],
]);

const refuseFlag = (name: string, { long }: Option): UsageError =>
  new UsageError('usage.variable', `${name} does not say if ${long} is set`, {
    expected: 'true or false',
  });

function parseOne({ parseArg, variadic }: Option, value: string, earlier: unknown): unknown {
  if (parseArg) return parseArg(value, earlier);
  return variadic ? [...(Array.isArray(earlier) ? (earlier as unknown[]) : []), value] : value;
}
