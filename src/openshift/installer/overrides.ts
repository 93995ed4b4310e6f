import { decodeUserText } from '../../base/text/utf8.ts';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { readInputFile } from '../../base/disk/files.ts';
import { isErrno, ConfigError, ConfigProblems, type DocumentProblem } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import {
  formatReference,
  parseRegistriesConf,
  type Reference,
  resolveCandidates,
} from '../../registry/index.ts';
import { readSshKeys } from '../../keys/index.ts';
import { parseDocument, findYamlExcess } from '../../shape/parse-text.ts';
import { readOnlyResource } from '../agent/resources.ts';
import { type RpmArchitecture, toRpmName } from '../release/bundle.ts';
import { PULL_SECRET_NAME, planInstallerInputs } from './installer.ts';

/** Files of the assets folder that replace rendered files, as in openshift/appliance. */
export const OVERRIDE_PATHS = {
  registriesConf: 'mirror/registries.conf',
  infraEnv: 'cluster-manifests/infraenv.yaml',
  pullSecret: 'cluster-manifests/pull-secret.yaml',
} as const;

/** The texts of the files that exist. */
export type Overrides = { readonly [Name in keyof typeof OVERRIDE_PATHS]?: string };

/**
 * @param directory of the configuration
 * @throws ConfigError `override.unreadable`, `override.too-large`
 */
export function readOverrides(directory: string): Overrides {
  const texts = Object.entries(OVERRIDE_PATHS).flatMap(([name, path]) => {
    const text = readIfPresent(directory, path);
    return text === undefined ? [] : [[name, text] as const];
  });
  return Object.fromEntries(texts);
}

function readIfPresent(directory: string, path: string): string | undefined {
  try {
    const bytes = readInputFile(join(directory, path), { domain: 'override', limit: 1 << 20 });
    return decodeUserText(bytes, path);
  } catch (cause) {
    if (isErrno(cause, 'ENOENT', 'ENOTDIR')) return undefined;
    if (!isErrno(cause, 'EACCES', 'EISDIR', 'EPERM')) throw cause;
    throw new ConfigError('override.unreadable', `the override ${path} cannot be read`, { cause });
  }
}

type Members = Readonly<Record<string, unknown>>;

/** The members that the installer and assisted-service read. */
type WantedInfraEnv = {
  /** Undefined until the payload states it. */
  readonly arch: RpmArchitecture | undefined;
  readonly sshKey?: string;
  /** True if an installer runs, which reads the file. */
  readonly isRead: boolean;
};

/**
 * Refuses an InfraEnv that the medium could not follow.
 *
 * @throws ConfigError `override.malformed`, `override.architecture`, `override.pull-secret-name`,
 * `override.no-effect`
 */
export function checkInfraEnv(text: string, wanted: WantedInfraEnv): void {
  const spec = readSpec(text);
  requireOwnArchitecture(spec, wanted.arch);
  requireOwnPullSecret(spec);
  if (!wanted.isRead) refuseUnread(spec, wanted.sshKey);
}

function requireOwnArchitecture(spec: Members, arch: WantedInfraEnv['arch']): void {
  const { cpuArchitecture: written = arch } = spec;
  const name = typeof written === 'string' ? written : JSON.stringify(written);
  const found = toRpmName(name);
  if (arch === undefined || found === arch) return;
  throw new ConfigError(
    'override.architecture',
    `${OVERRIDE_PATHS.infraEnv} is for ${found}, but the medium is for ${arch}`,
    { expected: arch, found, hint: 'correct spec.cpuArchitecture' },
  );
}

function requireOwnPullSecret({ pullSecretRef }: Members): void {
  const name = String(membersOf(pullSecretRef)['name']);
  if (name === PULL_SECRET_NAME) return;
  throw new ConfigError(
    'override.pull-secret-name',
    `${OVERRIDE_PATHS.infraEnv} names pull secret "${name}", but the medium has only ${PULL_SECRET_NAME}`,
    {
      expected: PULL_SECRET_NAME,
      found: name,
      hint: 'correct spec.pullSecretRef.name; the secret itself belongs in build.embed.pullSecret',
    },
  );
}

/** Architecture, pull secret and key are on such media too, from the configuration. */
function refuseUnread(spec: Members, sshKey: string | undefined): void {
  const { sshAuthorizedKey: key, ...others } = spec;
  const isOther = key !== undefined && key !== sshKey?.trim() && !hasKeys(sshKey ?? '', key);
  const known = ['cpuArchitecture', 'pullSecretRef'];
  const unread = [
    ...(isOther ? ['sshAuthorizedKey'] : []),
    ...Object.keys(others).filter((member) => !known.includes(member)),
  ];
  if (unread.length === 0) return;
  const members = unread.map((member) => `spec.${member}`).join(', ');
  throw new ConfigError(
    'override.no-effect',
    `${OVERRIDE_PATHS.infraEnv} has ${members}, which only the installer reads, but no installer runs`,
    { hint: 'set build.ignition to installer, or remove these members' },
  );
}

function hasKeys(others: string, text: unknown): boolean {
  const known = new Set(readSshKeys(others).keys.map(({ line }) => line));
  const { keys, problem } = readSshKeys(typeof text === 'string' ? text : '');
  return problem === undefined && keys.every(({ line }) => known.has(line));
}

/**
 * Refuses a pull secret other than the rendered one.
 *
 * @param pullSecret the one that is embedded; absent if none is embedded
 * @throws ConfigError `override.malformed`, `override.pull-secret`
 */
export function requireEmbeddedSecret(text: string, pullSecret: string | undefined): void {
  const rendered = planInstallerInputs({
    arch: 'x86_64',
    registriesConf: '',
    ...withoutUndefined({ pullSecret }),
  }).find(({ path }) => path === OVERRIDE_PATHS.pullSecret);
  const expected = readObject(rendered?.text ?? '', OVERRIDE_PATHS.pullSecret);
  if (isDeepStrictEqual(readObject(text, OVERRIDE_PATHS.pullSecret), expected)) return;
  throw new ConfigError(
    'override.pull-secret',
    `${OVERRIDE_PATHS.pullSecret} is not the pull secret that goes on the medium`,
    { hint: 'remove it, and name the secret in build.embed.pullSecret' },
  );
}

/**
 * The override, if it still looks for every image of the medium in the node's registry.
 *
 * @param images of the medium, as nodes ask for them
 * @throws ConfigError `registries-conf.malformed`, `override.mirrors-missing`
 */
export function chooseNodeRegistriesConf(
  rendered: string,
  override: string | undefined,
  images: readonly Reference[],
): string {
  if (override === undefined) return rendered;
  const [ours, theirs] = [rendered, override].map((text) =>
    parseRegistriesConf(text, OVERRIDE_PATHS.registriesConf),
  );
  if (!ours || !theirs) throw new TypeError('two texts have two parses');
  for (const image of images) {
    const name = formatReference(image);
    const listed = (conf: typeof ours): readonly string[] =>
      resolveCandidates(conf, image).map(({ reference }) => formatReference(reference));
    const found = new Set(listed(theirs));
    const missing = listed(ours).find((mirror) => mirror !== name && !found.has(mirror));
    if (missing === undefined) continue;
    throw new ConfigError(
      'override.mirrors-missing',
      `${OVERRIDE_PATHS.registriesConf} does not lead from ${name} to ${missing}, where the medium has it`,
      {
        expected: missing,
        found: [...found].join(', '),
        hint: 'add this mirror to it, or remove it and see "sealift resources" for what is rendered',
      },
    );
  }
  return override;
}

function readSpec(text: string): Members {
  const { infraEnv } = OVERRIDE_PATHS;
  try {
    return readOnlyResource(text, infraEnv, 'InfraEnv').spec;
  } catch (cause) {
    if (!(cause instanceof ConfigError)) throw cause;
    if (!(cause instanceof ConfigProblems))
      throw malformed(infraEnv, `cannot be read: ${cause.message}`);
    const problems = cause.problems.map(describeProblem);
    throw malformed(infraEnv, `has ${problems.join('; ')}`);
  }
}

const describeProblem = ({ line, path, problem, hint = '' }: DocumentProblem): string =>
  `in line ${line} ${path}: ${problem}${hint === '' ? '' : `, ${hint}`}`;

function readObject(text: string, path: string): Members {
  const excess = findYamlExcess(text);
  const document = excess ? undefined : parseDocument(text);
  const problem = excess?.message ?? document?.errors[0]?.message;
  if (problem !== undefined) throw malformed(path, `is not YAML: ${problem}`);
  return membersOf(document?.toJS());
}

const membersOf = (value: unknown): Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {};

const malformed = (path: string, problem: string): ConfigError =>
  new ConfigError('override.malformed', `${path} ${problem}`, { hint: 'correct it, or remove it' });
