import { decodeUserText } from '../base/text/utf8.ts';
import { existsSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { visit } from 'yaml';
import { isWithin } from '../base/disk/claim-output.ts';
import { readInputFile } from '../base/disk/files.ts';
import { ConfigError, isErrno, ConfigProblems, type DocumentProblem } from '../base/errors.ts';
import type { Redaction } from '../base/text/redact.ts';
import { isTooMany } from '../shape/decode-yaml.ts';
import { type ConfigDocument, createView, type View } from '../shape/document.ts';
import { checkConfiguration, readConfiguration } from '../shape/configuration.ts';
import { mergeDocuments, type MergedDocument } from '../shape/merge-documents.ts';
import { parseDocument } from '../shape/parse-text.ts';
import { type ApplianceConfig, applyDefaults } from './appliance-config.ts';
import { APPLIANCE } from './appliance-shape.ts';
import { checkOperators } from './imageset/rules.ts';
import { noteCaBundle } from './files.ts';
import { checkRules, noteVersion, TRANSPORT } from './rules.ts';
import { resolveSecrets, type Secrets } from './secrets.ts';
import { nameSetting, readSetting } from './setting.ts';

/*
 * The configuration of an appliance. Files and settings come in; one checked configuration with
 * defaults leaves, or every problem with its place. This room must not use the network or know
 * how media are built; it imports only base, shape and fbc.
 */

export type ConfigFile = {
  /** Absolute. */
  readonly path: string;
  /** The file's name in problems. */
  readonly shownAs: string;
  readonly text: string;
};

/** The configuration that a command line names. */
export type ConfigInput = {
  /** Later files are laid over earlier ones. */
  readonly files: readonly [ConfigFile, ...ConfigFile[]];
  /** `PATH=VALUE`, laid over all files. */
  readonly settings: readonly string[];
  /** Directory for relative paths of settings; paths in a file start at its own directory. */
  readonly cwd: string;
  /** Masks the secrets that are read. */
  readonly redaction: Redaction;
};

export type ConfigOptions = {
  /** Environment for `env:NAME`. */
  readonly env: NodeJS.ProcessEnv;
  /** Rules of the product beyond the form of its configuration. */
  readonly rules?: readonly ConfigRule[];
};

/** A check of a configuration without network: a problem stops a build, a note does not. */
export type ConfigRule = (
  view: View,
  given: { readonly secrets: Secrets['values']; readonly directory: string },
) => ConfigCheck;

export type ConfigCheck = {
  readonly problems: readonly DocumentProblem[];
  /** Findings that do not make the file wrong: absent secrets and features, which stop a build; new releases. */
  readonly notes: readonly DocumentProblem[];
};

/** Names of files, at least one. */
export type ConfigNames = readonly [string, ...string[]];

/** Bytes of all files together; more than any configuration has. */
const MAX_SIZE = 4 << 20;

/** Reads each as `readConfigText` does. */
export function readConfigFiles(
  names: ConfigNames,
  { set = [] }: { readonly set?: readonly string[] | undefined },
  { cwd, redaction }: Pick<ConfigInput, 'cwd' | 'redaction'>,
): ConfigInput {
  let left = MAX_SIZE;
  const read = (name: string): ConfigFile => {
    const path = resolve(cwd, name);
    const text = readConfigText(path, left);
    left -= Buffer.byteLength(text);
    return { path, shownAs: name, text };
  };
  const [first, ...overlays] = names;
  return { files: [read(first), ...overlays.map(read)], settings: set, cwd, redaction };
}

/**
 * Also reads the files and variables that secrets refer to.
 *
 * @throws ConfigProblems `config.problems` with all of them; UsageError `usage.set`
 */
export function loadConfig(input: ConfigInput, options: ConfigOptions): ApplianceConfig {
  const { view, secrets, problems } = examine(input, options);
  const all = sortByPlace([...problems, ...secrets.absent], input);
  if (all.length > 0) throw new ConfigProblems(nameConfig(input), all);
  return applyDefaults(view, secrets);
}

/** Checks a configuration without network. Reads no more than the files it names. */
export function checkConfig(input: ConfigInput, options: ConfigOptions): ConfigCheck {
  const { view, secrets, problems, notes } = examine(input, options);
  const all = [...secrets.absent, ...notes, ...noteVersion(view), ...noteCaBundle(view)];
  return {
    problems: sortByPlace(problems, input),
    notes: sortByPlace(all, input).map((note) => ({ ...note, severity: 'note' })),
  };
}

export function nameConfig({ files: [{ shownAs }, ...overlays], settings }: ConfigInput): string {
  const count = overlays.length === 1 ? '1 overlay' : `${overlays.length} overlays`;
  const laid = [...(overlays.length > 0 ? [count] : []), ...(settings.length > 0 ? ['--set'] : [])];
  return laid.length === 0 ? shownAs : `${shownAs} with ${laid.join(' and ')}`;
}

/** Configurations by file name, with the command that reads each. */
const CONFIGURATIONS = [
  ['appliance-config.yaml', 'sealift build'],
  ['image-based-installation-config.yaml', 'sealift build installation-iso'],
  ['image-based-config.yaml', 'sealift config-iso build'],
] as const;

/** Names the configuration of another product, if the folder has one. */
function adviseMissing(path: string): string {
  const [name, command] =
    CONFIGURATIONS.find(([name]) => existsSync(join(dirname(path), name))) ?? [];
  return name === undefined
    ? 'run "sealift init" to write one, or name another file'
    : `its folder has ${name}, which "${command}" reads: name another file or product`;
}

/**
 * Reads at most `limit` bytes.
 *
 * @throws ConfigError `config.missing`, `config.unreadable`, `config.too-large`, `config.not-utf8`
 */
export function readConfigText(path: string, limit = MAX_SIZE): string {
  try {
    return decodeUserText(readInputFile(path, { domain: 'config', limit }), path);
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) {
      const hint = adviseMissing(path);
      throw new ConfigError('config.missing', `configuration ${path} does not exist`, { hint });
    }
    if (isErrno(error, 'EACCES', 'EISDIR', 'ELOOP', 'ENAMETOOLONG', 'EPERM')) {
      throw new ConfigError('config.unreadable', `${path} cannot be read`, { cause: error });
    }
    throw error;
  }
}

/** The files and settings as one document, with one limit on their number of values. */
export function readMerged({ files, settings, cwd, redaction }: ConfigInput): {
  readonly document: MergedDocument;
  readonly view: View;
} {
  const count = { values: 0 };
  const directories = new Map<ConfigDocument, string>();
  const read = ({ path, shownAs, text }: ConfigFile): ConfigDocument => {
    const document = readConfiguration({ text, file: shownAs, count }, APPLIANCE);
    directories.set(document, dirname(path));
    return document;
  };
  const [first, ...overlays] = files;
  const document = mergeDocuments(
    [read(first), ...overlays.flatMap((file) => (isTooMany(count) ? [] : [read(file)]))],
    settings.flatMap((text) => (isTooMany(count) ? [] : [readSetting(text, { count, redaction })])),
  );
  const view = createView(document, {
    directoryOf: (path) => directories.get(document.ownerOf(path)) ?? cwd,
    hidden: { prefix: TRANSPORT, at: /^(?:additionalImages|operators)\b/ },
  });
  return { document, view };
}

/** PATH_MAX of Linux. */
const MAX_PATH = 4096;

/**
 * The existing files and directories that any text of a configuration names, as absolute paths, so that
 * nothing overwrites them. Relative paths start at `directory`.
 */
export function listNamedPaths(text: string, directory: string): readonly string[] {
  const paths = new Set<string>();
  visit(parseDocument(text, { logLevel: 'silent', uniqueKeys: false }), {
    Scalar: (_key, { value }) => {
      if (typeof value !== 'string' || value.length > MAX_PATH || /[\n\0]/.test(value)) return;
      for (const path of listReadings(value)) {
        if (isNamed(value, { path: resolve(directory, path), directory })) {
          paths.add(resolve(directory, path));
        }
      }
    },
  });
  return [...paths];
}

function examine(
  input: ConfigInput,
  options: ConfigOptions,
): ConfigCheck & { readonly view: View; readonly secrets: Secrets } {
  const { document, view } = readMerged(input);
  const secrets = resolveSecrets(view, { env: options.env, redaction: input.redaction });
  if (document.isBroken) return { view, secrets, problems: document.problems, notes: [] };
  const given = { secrets: secrets.values, directory: dirname(input.files[0].path) };
  const verdicts = (options.rules ?? []).map((rule) => rule(view, given));
  const problems = [
    ...document.problems,
    ...checkConfiguration(document, APPLIANCE),
    ...checkRules(view),
    ...checkOperators(view),
    ...secrets.problems,
  ];
  const keyOf = ({ file, line, path }: DocumentProblem): string => `${file} ${line} ${path}`;
  const told = new Set(problems.map(keyOf));
  const more = verdicts
    .flatMap((verdict) => verdict.problems)
    .filter((problem) => !told.has(keyOf(problem)));
  const notes = verdicts.flatMap((verdict) => verdict.notes);
  return { view, secrets, problems: [...problems, ...more], notes };
}

/** Problems in the order of the files; those of settings come last. */
function sortByPlace(
  problems: readonly DocumentProblem[],
  { files, settings }: ConfigInput,
): readonly DocumentProblem[] {
  const names = [...files.map(({ shownAs }) => shownAs), ...settings.map(nameSetting)];
  const order = new Map(names.map((name, index) => [name, index]));
  const rank = ({ file }: DocumentProblem): number => order.get(file) ?? 0;
  return problems.toSorted((a, b) => rank(a) - rank(b) || a.line - b.line || a.column - b.column);
}

/** `file:PATH`, `file:///PATH` and `oci:PATH`. */
const SCHEME = /^(?:file|oci):(?:\/\/(?=\/))?/;

/** Paths that a value may mean: the path of an image layout may have a tag at its end. */
function listReadings(value: string): readonly string[] {
  const path = value.replace(SCHEME, '');
  return [path, path.replace(/:[^/:]*$/, '')];
}

/** True if a value means an existing path. A plain word does not mean the folder of that name. */
function isNamed(
  value: string,
  { path, directory }: { readonly path: string; readonly directory: string },
): boolean {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isDirectory() !== true) return found !== undefined;
  return (value.includes('/') || SCHEME.test(value)) && !isWithin(directory, path);
}
