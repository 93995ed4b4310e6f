import { isUtf8 } from 'node:buffer';
import { dirname, resolve } from 'node:path';
import { ConfigError, isErrno } from '../base/errors.ts';
import { readInputFile } from '../base/disk/files.ts';
import type { ApplianceConfig } from './appliance-config.ts';
import { applyDefaults } from './apply-defaults.ts';
import { checkOperators } from './check-operators.ts';
import { checkRules, noteVersion } from './check-rules.ts';
import { checkSchema } from './document/check-schema.ts';
import { readAlongSchema } from './document/document.ts';
import { ConfigProblems, type DocumentProblem } from '../base/problem.ts';
import { readSchema } from './document/schema.ts';
import { resolveSecrets, type Secrets } from './secret/resolve-secrets.ts';
import { createView, type View } from './document/view.ts';

export type ConfigOptions = {
  /** Where `env:NAME` looks. */
  readonly env: NodeJS.ProcessEnv;
  /** The file's name in problems; its path when absent. */
  readonly shownAs?: string;
  /** What the product demands beyond the form of its configuration. */
  readonly rules?: readonly ConfigRule[];
};

/** What can be said of a configuration without network: a problem stops a build, a note does not. */
export type ConfigRule = (
  view: View,
  given: { readonly secrets: Secrets['values']; readonly directory: string },
) => ConfigCheck;

export type ConfigCheck = {
  readonly problems: readonly DocumentProblem[];
  /** What does not make the file wrong: absent secrets and features, which stop a build, new releases. */
  readonly notes: readonly DocumentProblem[];
};

/** More text than any configuration has. */
const MAX_SIZE = 4 << 20;

/**
 * Reads, checks and completes a configuration, including the files and variables its secrets refer to.
 *
 * @throws ConfigProblems `config.problems` with all of them, ConfigError `config.missing`
 */
export function loadConfig(path: string, options: ConfigOptions): ApplianceConfig {
  const { view, secrets, problems } = examine(readConfigText(path), path, options);
  const all = sortByPlace([...problems, ...secrets.absent]);
  if (all.length > 0) throw new ConfigProblems(options.shownAs ?? path, all);
  return applyDefaults(view, secrets, dirname(resolve(path)));
}

/** Checks a text without network. Reads no more than the files it names. */
export function checkConfig(text: string, path: string, options: ConfigOptions): ConfigCheck {
  const { view, secrets, problems, notes } = examine(text, path, options);
  return {
    problems: sortByPlace(problems),
    notes: sortByPlace([...secrets.absent, ...notes, ...noteVersion(view)]).map((note) => ({
      ...note,
      severity: 'note',
    })),
  };
}

/** @throws ConfigError `config.missing`, `config.unreadable`, `config.too-large`, `config.not-utf8` */
export function readConfigText(path: string): string {
  try {
    return decodeText(path, readInputFile(path, { domain: 'config', limit: MAX_SIZE }));
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) {
      const hint = 'run "sealift init" to write one, or name another file';
      throw new ConfigError('config.missing', `there is no configuration ${path}`, { hint });
    }
    if (isErrno(error, 'EACCES', 'EISDIR', 'ELOOP', 'ENAMETOOLONG', 'EPERM')) {
      throw new ConfigError('config.unreadable', `${path} cannot be read`, { cause: error });
    }
    throw error;
  }
}

/** YAML 1.2.2, 5.1 has no NUL: where there is one, it is UTF-16 or no text. */
function decodeText(path: string, bytes: Buffer): string {
  if (isUtf8(bytes) && !bytes.includes(0)) return bytes.toString('utf8');
  throw new ConfigError('config.not-utf8', `${path} is not UTF-8 text`, {
    hint: 'save it as UTF-8, or name another file',
  });
}

function examine(
  text: string,
  path: string,
  options: ConfigOptions,
): ConfigCheck & { readonly view: View; readonly secrets: Secrets } {
  const schema = readSchema();
  const document = readAlongSchema({ text, file: options.shownAs ?? path }, schema);
  const view = createView(document);
  const directory = dirname(resolve(path));
  const secrets = resolveSecrets(view, { directory, env: options.env });
  if (document.isBroken) return { view, secrets, problems: document.problems, notes: [] };
  const given = { secrets: secrets.values, directory };
  const verdicts = (options.rules ?? []).map((rule) => rule(view, given));
  const problems = [
    ...document.problems,
    ...checkSchema(document, schema),
    ...checkRules(view, directory),
    ...checkOperators(view),
    ...secrets.problems,
  ];
  const told = new Set(problems.map(({ line, path }) => `${line} ${path}`));
  const more = verdicts
    .flatMap((verdict) => verdict.problems)
    .filter(({ line, path }) => !told.has(`${line} ${path}`));
  const notes = verdicts.flatMap((verdict) => verdict.notes);
  return { view, secrets, problems: [...problems, ...more], notes };
}

const sortByPlace = (problems: readonly DocumentProblem[]): readonly DocumentProblem[] =>
  problems.toSorted((a, b) => a.line - b.line || a.column - b.column);
