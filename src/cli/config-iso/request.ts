import type { Command } from 'commander';
import { existsSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { variableOf } from '../../base/environment.ts';
import { UsageError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { isMinorVersion, isVersion } from '../../openshift/release/version.ts';
import type { SiteFlow } from '../../sites/resources/shape.ts';
import type { SitesRequest } from '../../stages/request.ts';
import type { CliHost } from '../host.ts';
import { refuseOption } from '../options.ts';
import { readEpoch } from '../ask-iso.ts';
import { createOutputOption, type OutputFormat } from '../terminal/output.ts';
import { createLogFormatOption } from '../terminal/progress.ts';
import { addSeedOption, readAskedSeed, type SeedOptions } from './seed.ts';
import { INSTALL_FILE, AGENT_FILE } from '../../sites/site.ts';

export type SitesOptions = SeedOptions & {
  readonly template?: string;
  readonly flow?: SiteFlow;
  readonly dropIn: boolean;
  readonly allowShared?: readonly SharedFact[];
  readonly outputFormat: OutputFormat;
};

type SharedFact = (typeof SHARED)[number];

/** Facts that sites may share, but not names, ids and MAC addresses: these identify a cluster or a host. */
const SHARED = ['address', 'hostname'] as const;

const SITES =
  'folder of site folders, one site folder, .zip, .tar or .tar.gz of either, or .xlsx, .csv or .yaml table';

export const addSitesOptions = (command: Command): Command =>
  addSeedOption(addOwnOptions(command))
    .addOption(createLogFormatOption())
    .addOption(createOutputOption());

const addOwnOptions = (command: Command): Command =>
  command
    .argument('<sites>', SITES)
    .option('--template <dir>', 'site folder with {{ column }} placeholders that a table fills')
    .option(
      '--flow <kind>',
      '"agent" or "image-based": how SiteConfigs are installed, and ClusterInstances whose templates are your own',
      parseFlow,
    )
    .option(
      '--drop-in',
      'SITES is the directory of one site, with the file names of openshift-install',
      false,
    )
    .option(
      '--allow-shared <what>',
      'only warn if sites have the same "address" or "hostname"; may be repeated',
      addShared,
    )
    .option(
      '--seed-version <x.y.z>',
      'version of the seed image, whose nodes need and read other values than those of newer ones',
      parseSeedVersion,
    );

function parseFlow(text: string): SiteFlow {
  if (text === 'agent' || text === 'image-based') return text;
  throw refuseOption('usage.flow', text, { expected: 'agent or image-based' });
}

function parseSeedVersion(text: string): string {
  if (isMinorVersion(text) || isVersion(text)) return text;
  throw refuseOption('usage.seed-version', text, { expected: 'X.Y or X.Y.Z' });
}

function addShared(text: string, before: readonly SharedFact[] = []): readonly SharedFact[] {
  const fact = SHARED.find((name) => name === text);
  if (fact !== undefined) return [...before, fact];
  throw refuseOption('usage.allow-shared', text, { expected: SHARED.join(' or ') });
}

export async function readSitesRequest(
  sites: string,
  options: SitesOptions,
  host: CliHost,
): Promise<SitesRequest> {
  const { template, dropIn, allowShared } = options;
  const { cwd, env, redaction, now } = host;
  return {
    sites: resolveGiven(cwd, sites, 'SITES'),
    cwd,
    dropIn,
    ...(dropIn && existsSync(join(resolve(cwd, sites), AGENT_FILE)) && { isForAgents: true }),
    env,
    redaction,
    ...withoutUndefined({ flow: options.flow }),
    ...(template !== undefined && { template: resolveGiven(cwd, template, '--template') }),
    ...(allowShared && { shared: new Set(allowShared) }),
    ...(await readAskedSeed(options, host)),
    // openshift-install is lenient as well for the programs that run it.
    isLenient: variableOf(env, 'OPENSHIFT_INSTALL_INVOKER') !== undefined,
    epoch: readEpoch(env) ?? Math.floor(now() / 1000),
  };
}

/** Resolves a path. An empty one would mean the working directory, which `--out "$UNSET"` never intends. */
export function resolveGiven(cwd: string, path: string, option: string): string {
  if (path !== '') return resolve(cwd, path);
  throw new UsageError('usage.empty-path', `${option} is empty`, {
    hint: 'name a file or a directory; "." is the working directory',
  });
}

/** Refuses an output directory among the inputs: the next run would read it as a site, or as manifests. */
export function readOut(
  out: string | undefined,
  { sites, template, dropIn }: SitesRequest,
  { cwd }: CliHost,
): string {
  if (dropIn) return out === undefined ? sites : resolveGiven(cwd, out, '--out');
  const path = resolveGiven(cwd, out ?? 'config-isos', '--out');
  const input = [sites, template].find((one) => one !== undefined && isWithin(path, one));
  if (input === undefined && !hasOwnSite(sites, path)) return path;
  throw new UsageError('usage.out-inside', `output directory ${path} is among the sites`, {
    hint: `name a directory with --out that puts no output into ${input ?? sites}`,
  });
}

function isWithin(path: string, directory: string): boolean {
  const below = relative(directory, path);
  return below === '' || !(below === '..' || below.startsWith('../'));
}

/**
 * True if output goes next to the folder of the sites and a site has the name of that folder: its
 * `auth/` would be written into the folder.
 */
const hasOwnSite = (sites: string, out: string): boolean =>
  dirname(sites) === out &&
  [INSTALL_FILE, basename(sites)].some((name) => existsSync(join(sites, name)));
