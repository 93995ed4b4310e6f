import { decodeUserText } from '../base/text/utf8.ts';
import { resolve } from 'node:path';
import { readInputFile } from '../base/disk/files.ts';
import { SealiftError, type DocumentProblem } from '../base/errors.ts';
import { withoutUndefined } from '../base/lists.ts';
import type { CpuArchitecture } from '../config/appliance-config.ts';
import type { ConfigRule } from '../config/load.ts';
import { parseReleaseVersion } from '../config/rules.ts';
import { completeVersion, parseLocalCatalog } from '../fbc/index.ts';
import { parseCatalogSource } from '../openshift/catalog/source.ts';
import {
  checkInfraEnv,
  requireEmbeddedSecret,
  OVERRIDE_PATHS,
  readOverrides,
  type Overrides,
} from '../openshift/installer/overrides.ts';
import { CONFIGURE, needsNewerRelease, noRegistryOffline } from '../openshift/mirror/server.ts';
import { readWorkspace } from '../openshift/workspace/workspace.ts';
import { listUnusableEntries, parseRegistriesConf } from '../registry/index.ts';
import { readItemTexts, type View } from '../shape/document.ts';

/* The rules that refuse the configuration of a live ISO without asking the network. */

/** `validate` and every command that builds or plans run this one list. */
export const LIVE_ISO_RULES: readonly ConfigRule[] = [
  checkCatalogs,
  checkRegistriesConf,
  checkWorkspace,
  checkRanges,
  checkPullSecrets,
  checkOverrides,
];

const refuse = (problems: readonly DocumentProblem[]): ReturnType<ConfigRule> => ({
  problems,
  notes: [],
});

/** Checks catalogs, with the function that the stages read them with. */
function checkCatalogs(view: View): ReturnType<ConfigRule> {
  return refuse(
    readItemTexts(view, 'operators', '.catalog').flatMap(({ path, text }) =>
      attempt(view, path, () => parseCatalogSource(text, view.directoryOf(path))),
    ),
  );
}

function checkRegistriesConf(view: View) {
  const path = 'build.registriesConf';
  const text = view.text(path);
  if (text === undefined) return refuse([]);
  const file = resolve(view.directoryOf(path), text);
  return refuse(
    attempt(view, path, () => {
      const bytes = readInputFile(file, { domain: 'registries-conf' });
      return parseRegistriesConf(decodeUserText(bytes, file), file);
    }),
  );
}

/** Checks the files next to the images of a mirror; the plan checks the images themselves. */
function checkWorkspace(view: View) {
  const text = view.text('mirrorPath');
  if (text === undefined) return refuse([]);
  const local = readItemTexts(view, 'operators', '.catalog').filter(
    ({ path, text }) => parseLocalCatalog(text, view.directoryOf(path)) !== undefined,
  );
  const version = view.text('ocpRelease.version') ?? '';
  const isOld = parseReleaseVersion(version) !== undefined && needsNewerRelease(version);
  const lacksServer = isOld && view.text('imageRegistry.uri') === undefined;
  return refuse([
    ...(lacksServer
      ? attempt(view, 'ocpRelease.version', () => {
          throw noRegistryOffline(version, CONFIGURE);
        })
      : []),
    ...attempt(view, 'mirrorPath', () =>
      readWorkspace(resolve(view.directoryOf('mirrorPath'), text)),
    ),
    ...local.map(({ path, text }) => {
      const problem = `"${text}" is not in the mirror: with mirrorPath, all images come from it`;
      return view.report(path, problem, { hint: 'name the catalog by its reference' });
    }),
  ]);
}

function checkRanges(view: View): ReturnType<ConfigRule> {
  const packages = view.items('operators').flatMap((path) => view.items(`${path}.packages`));
  const channels = packages.flatMap((path) => view.items(`${path}.channels`));
  return refuse(
    [...packages, ...channels].flatMap((item) =>
      ['minVersion', 'maxVersion'].flatMap((name) => {
        const path = `${item}.${name}`;
        const text = view.text(path);
        if (text === undefined || completeVersion(text) !== undefined) return [];
        return [view.report(path, `"${text}" is not a version`)];
      }),
    ),
  );
}

/** Checks the files of the folder that replace rendered files, as far as possible without the payload. */
function checkOverrides(view: View, { directory, secrets }: Parameters<ConfigRule>[1]) {
  const at = 'apiVersion';
  let overrides: Overrides = {};
  const unreadable = attempt(view, at, () => (overrides = readOverrides(directory)));
  const { registriesConf, infraEnv, pullSecret } = overrides;
  const embedded = secrets.get('build.embed.pullSecret');
  const checks: readonly (readonly [string | undefined, (text: string) => void])[] = [
    [registriesConf, (text) => void parseRegistriesConf(text, OVERRIDE_PATHS.registriesConf)],
    [
      infraEnv,
      (text) => {
        checkInfraEnv(text, wantedInfraEnv(view, secrets.get('sshKey')));
      },
    ],
    [
      pullSecret,
      (text) => {
        requireEmbeddedSecret(text, embedded);
      },
    ],
  ];
  return refuse([
    ...unreadable,
    ...checks.flatMap(([text, check]) =>
      text === undefined
        ? []
        : attempt(view, at, () => {
            check(text);
          }),
    ),
  ]);
}

function wantedInfraEnv(view: View, sshKey?: string): Parameters<typeof checkInfraEnv>[1] {
  const isGiven = (view.text('ocpRelease.url') ?? view.text('mirrorPath') ?? '') !== '';
  const text = view.text('ocpRelease.cpuArchitecture') ?? (isGiven ? undefined : 'x86_64');
  return {
    arch: text as CpuArchitecture | undefined,
    isRead: view.text('build.ignition') !== 'embedded',
    ...withoutUndefined({ sshKey }),
  };
}

/** Notes only: before registries are asked, it is unknown which of them will ask for a password. */
function checkPullSecrets(
  view: View,
  { secrets }: Parameters<ConfigRule>[1],
): ReturnType<ConfigRule> {
  const notes = (['pullSecret', 'build.embed.pullSecret'] as const).flatMap((path) =>
    listUnusableEntries(secrets.get(path) ?? '').map(({ key, reason }) => {
      const problem = `entry ${JSON.stringify(key)} cannot be used: ${reason}`;
      const hint = 'a build stops if this registry asks for a password';
      return view.report(path, problem, { hint });
    }),
  );
  return { problems: [], notes };
}

/** Reports the error of a reader at the place that it read. */
function attempt(view: View, path: string, read: () => unknown): readonly DocumentProblem[] {
  try {
    read();
    return [];
  } catch (error) {
    if (error instanceof SealiftError) {
      return [view.report(path, error.message, { hint: error.hint })];
    }
    // A file that cannot be read is a problem of its own rule.
    if (error instanceof Error && 'code' in error) return [];
    throw error;
  }
}
