import { dirname, join, resolve } from 'node:path';
import { digestFromHex, type Digest, isDigestHex } from '../base/digest.ts';
import { hasFile } from '../base/disk/files.ts';
import { variableOf } from '../base/environment.ts';
import { ConfigError, UsageError, type DocumentProblem } from '../base/errors.ts';
import { withoutUndefined } from '../base/lists.ts';
import { joinProblem } from '../base/text/words.ts';
import { readConfigFiles } from '../config/load.ts';
import { findNetworkTool, formatFinding, planNetwork } from '../nmstate/index.ts';
import { explainReference, listUnusableEntries } from '../registry/index.ts';
import { readPostScript, readInstallationConfig } from '../sites/installation.ts';
import { checkInstallation } from '../stages/installation-iso.ts';
import type { InstallationIsoRequest } from '../stages/request.ts';
import type { CliHost } from './host.ts';
import { DEFAULT_CONCURRENCY } from '../config/build-shape.ts';
import { askIso, type BuildOptions } from './ask-iso.ts';

export const INSTALLATION_OUTPUT = 'rhcos-ibi.iso';

export type InstallationRequestOptions = BuildOptions & {
  readonly baseIso?: string;
  readonly coreosStream?: string;
  readonly release?: string;
  readonly strict?: boolean;
  readonly embedSeed?: boolean;
  readonly embedRelease?: boolean;
  readonly embedPrecached?: boolean;
  readonly embedImage?: readonly string[];
  readonly registryImage?: string;
  readonly registriesConf?: string;
  readonly caBundle?: string;
  readonly insecureRegistry?: readonly string[];
};

export async function readInstallationRequest(
  path: string,
  given: InstallationRequestOptions,
  host: CliHost,
): Promise<InstallationIsoRequest> {
  const options = withOverride(given, variableOf(host.env, OVERRIDE));
  checkUsage(options);
  const base = readBase(options, host);
  const file = resolve(host.cwd, path);
  const files = readConfigFiles([path], {}, host);
  const inputs = [join(dirname(file), 'post.sh'), ...listFiles(options)];
  const medium = { product: 'installation-iso', output: INSTALLATION_OUTPUT, files, inputs };
  const asked = askIso(medium, options, host);
  const { config, postScript, notes } = await readInstallation(file, path, host);
  const build = await readAccess(options, host);
  return {
    ...asked,
    config,
    access: { pullSecret: config.pullSecret, build },
    confidential: ['pullSecret'],
    notes: [...noteOverride(given, options), ...notes.map(formatNote)],
    elsewhere: [config.installationDisk],
    lanes: options.concurrency ?? DEFAULT_CONCURRENCY,
    embed: readEmbed(options),
    build,
    ...(base && 'streamUrl' in base && { streamUrl: base.streamUrl }),
    ...withoutUndefined({ base, release: options.release, postScript, isStrict: options.strict }),
  };
}

/** Variable with the address from which openshift-install takes its live ISO, if it is set. */
const OVERRIDE = 'OPENSHIFT_INSTALL_OS_IMAGE_OVERRIDE';

function withOverride(
  options: InstallationRequestOptions,
  baseIso: string | undefined,
): InstallationRequestOptions {
  const { baseIso: given, coreosStream, release } = options;
  const isNamed = [given, coreosStream, release].some((option) => option !== undefined);
  return isNamed || baseIso === undefined ? options : { ...options, baseIso };
}

/** Notes that the variable decides: one that was exported long ago is easily forgotten. */
const noteOverride = (
  given: InstallationRequestOptions,
  { baseIso }: InstallationRequestOptions,
): readonly string[] =>
  given.baseIso === baseIso ? [] : [`the live ISO is taken from ${OVERRIDE}`];

type Installation = Pick<InstallationIsoRequest, 'config' | 'postScript'> & {
  readonly notes: readonly (DocumentProblem | string)[];
};

/** Applies every rule that needs no network, for `validate` and every command that builds or plans. */
export async function readInstallation(
  file: string,
  shownAs: string,
  host: CliHost,
): Promise<Installation> {
  const postScript = await readPostScript(file);
  const { config, notes } = await readConfig(file, shownAs, host);
  const installation = { config, ...(postScript && { postScript }) };
  checkInstallation(installation);
  const entries = listUnusableEntries(config.pullSecret.reveal()).map(
    ({ key, reason }) => `pullSecret entry ${key} cannot be used: ${reason}`,
  );
  return { ...installation, notes: [...notes, ...entries] };
}

const formatNote = (note: DocumentProblem | string): string =>
  typeof note === 'string'
    ? note
    : `${note.file}:${note.line}: ${note.path}: ${note.problem}; ${note.hint ?? ''}`;

async function readConfig(
  file: string,
  shownAs: string,
  host: CliHost,
): Promise<Pick<Installation, 'config' | 'notes'>> {
  const { env, redaction } = host;
  const notes: (DocumentProblem | string)[] = [];
  const warn = (warning: DocumentProblem): void => void notes.push(warning);
  const nmstate = await findNetworkTool(host);
  const judgeNetwork = async (text: string): Promise<string | undefined> => {
    const network = { networkConfig: text, interfaces: [] };
    const options = { tool: nmstate, signal: host.signal, isApplied: true };
    const { ofTool } = await planNetwork(network, options);
    if (!nmstate) {
      notes.push('nmstatectl is not installed: networkConfig was checked, but not by nmstate');
    }
    for (const warning of ofTool.warnings) notes.push(formatFinding(warning, 'networkConfig'));
    return ofTool.problems[0] && formatFinding(ofTool.problems[0]);
  };
  return {
    config: await readInstallationConfig(file, { shownAs, env, redaction, judgeNetwork, warn }),
    notes,
  };
}

function checkUsage(options: InstallationRequestOptions): void {
  const { release, embedRelease } = options;
  if (embedRelease === true && release === undefined) {
    throw new UsageError('usage.no-release', '--embed-release has no release to carry', {
      hint: 'name the release of the seed with --release',
    });
  }
  requireReferences('--release', release);
  requireReferences('--embed-image', ...(options.embedImage ?? []));
  requireReferences('--registry-image', options.registryImage);
  checkBases(options);
}

export function requireReferences(option: string, ...texts: readonly (string | undefined)[]): void {
  for (const text of texts) {
    const why = text === undefined ? undefined : explainReference(text);
    if (why === undefined) continue;
    throw new UsageError('usage.reference', joinProblem(`${option} "${text ?? ''}"`, why));
  }
}

/** Checks the bases: together with another base, a release is only for the images that are carried. */
function checkBases(options: InstallationRequestOptions): void {
  const { baseIso, coreosStream, release } = options;
  const bases = [
    ...(baseIso === undefined ? [] : ['--base-iso']),
    ...(coreosStream === undefined ? [] : ['--coreos-stream']),
    ...(release === undefined ? [] : ['--release']),
  ];
  if (bases.length === 0) {
    throw new UsageError('usage.no-base', 'no CoreOS live ISO is named', {
      hint: 'name one with --base-iso, a release with --release, or --coreos-stream',
    });
  }
  if (bases.length === 1 || (bases.length === 2 && bases[1] === '--release' && isCarrying(options)))
    return;
  throw new UsageError('usage.two-bases', `${bases.join(' and ')} each name a live ISO`, {
    hint: 'leave all but one of them out',
  });
}

const listFiles = (options: InstallationRequestOptions): readonly (string | undefined)[] => {
  const { baseIso, coreosStream, registriesConf, caBundle } = options;
  return [baseIso, coreosStream, registriesConf, caBundle];
};

const isCarrying = (options: InstallationRequestOptions): boolean =>
  [options.embedSeed, options.embedRelease, options.embedPrecached].includes(true) ||
  options.embedImage !== undefined;

const readEmbed = ({
  embedSeed = false,
  embedRelease = false,
  embedPrecached = false,
  embedImage = [],
  registryImage,
}: InstallationRequestOptions): InstallationIsoRequest['embed'] => ({
  seed: embedSeed,
  release: embedRelease,
  precached: embedPrecached,
  images: embedImage,
  ...withoutUndefined({ registryImage }),
});

async function readAccess(
  { caBundle, registriesConf, retryFor, insecureRegistry = [] }: InstallationRequestOptions,
  { cwd }: CliHost,
): Promise<InstallationIsoRequest['build']> {
  if (caBundle !== undefined && !(await hasFile(resolve(cwd, caBundle)))) {
    throw new ConfigError('input.missing', `--ca-bundle "${caBundle}" does not exist`, {
      hint: 'name a file with certificates in PEM',
    });
  }
  return {
    insecureRegistries: insecureRegistry,
    ...withoutUndefined({ retryFor }),
    ...(caBundle !== undefined && { caBundle: resolve(cwd, caBundle) }),
    ...(registriesConf !== undefined && { registriesConf: resolve(cwd, registriesConf) }),
  };
}

function readBase(
  { baseIso, coreosStream }: InstallationRequestOptions,
  { cwd }: CliHost,
): InstallationIsoRequest['base'] {
  if (baseIso !== undefined) {
    return isAddress(baseIso)
      ? readTrustedAddress(baseIso, 'live ISO')
      : { file: resolve(cwd, baseIso) };
  }
  if (coreosStream === undefined) return undefined;
  if (!isAddress(coreosStream)) return { streamFile: resolve(cwd, coreosStream) };
  const url = URL.canParse(coreosStream) ? new URL(coreosStream) : undefined;
  if (url?.protocol === 'https:') return { streamUrl: url.href };
  throw new UsageError(
    'usage.coreos-stream',
    'the address of the CoreOS stream cannot be trusted',
    {
      expected: 'https://HOST/PATH',
      found: url?.protocol ?? 'no address',
      hint: 'give its https address, or a file',
    },
  );
}

export const isAddress = (text: string): boolean => /^[a-z][a-z0-9+.-]*:\/\//i.test(text);

/** Reads an address; `?sha256=` is ours and not sent, any other query stays. */
export function readTrustedAddress(
  text: string,
  name: string,
): { readonly url: string; readonly sha256: Digest } {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 'https:') throw untrusted(name, url?.protocol ?? 'no address');
  const hex = url.searchParams.get('sha256')?.toLowerCase() ?? '';
  if (!isDigestHex(hex)) throw untrusted(name, `sha256=${hex}`);
  url.searchParams.delete('sha256');
  return { url: url.href, sha256: digestFromHex(hex) };
}

const untrusted = (name: string, found: string): UsageError =>
  new UsageError('usage.base-iso', `the address of the ${name} cannot be trusted`, {
    expected: 'https://HOST/PATH?sha256= and 64 hex digits',
    found,
    hint: 'add the sha256 that its publisher gives',
  });
