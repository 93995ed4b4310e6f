import { resolve } from 'node:path';
import { SealiftError } from '../../base/errors.ts';
import { readInputFile } from '../../base/files.ts';
import { parseReleaseVersion } from '../../config/check-shapes.ts';
import type { ConfigProblem } from '../../config/document/problem.ts';
import { readTexts, type View } from '../../config/document/view.ts';
import type { ConfigRule } from '../../config/load-config.ts';
import { findMissingFeatures } from '../../config/missing-features.ts';
import { completeVersion } from '../../openshift/catalog/filter/version/version-constraint.ts';
import { parseCatalogSource } from '../../openshift/catalog/catalog-source.ts';
import { needsRegistryImage } from '../../openshift/mirror/registry-image.ts';
import { listUnusableEntries } from '../../registry/client/auth/credentials.ts';
import { parseReference } from '../../registry/reference.ts';
import { parseRegistriesConf } from '../../registry/registries-conf.ts';

/**
 * Everything that the stages of a live ISO would refuse without having asked the network. `validate`
 * and every command that builds or plans run this one list.
 */
export const LIVE_ISO_RULES: readonly ConfigRule[] = [
  (view) => refuse(findMissingFeatures(view)),
  checkRegistryImage,
  checkReferences,
  checkRegistriesConf,
  checkRanges,
  checkPullSecrets,
];

const refuse = (problems: readonly ConfigProblem[]): ReturnType<ConfigRule> => ({
  problems,
  notes: [],
});

/** Releases before 4.21 have no registry that could serve the media. */
function checkRegistryImage(view: View): ReturnType<ConfigRule> {
  const version = view.text('ocpRelease.version') ?? '';
  const isKnown = parseReleaseVersion(version) !== undefined;
  if (!isKnown || view.text('imageRegistry.uri') !== undefined || !needsRegistryImage(version)) {
    return refuse([]);
  }
  const problem = `release ${version} cannot serve the media by itself: imageRegistry.uri is required`;
  const hint = 'set it to a registry server image, such as docker.io/library/registry:2';
  return refuse([view.document.report.at('ocpRelease.version', problem, hint)]);
}

/** By the functions that the stages read them with. */
function checkReferences(view: View, { directory }: { readonly directory: string }) {
  const single = ['ocpRelease.url', 'imageRegistry.uri'].flatMap((path) => {
    const text = view.text(path);
    return text === undefined ? [] : [{ path, text }];
  });
  return refuse([
    ...[...single, ...readTexts(view, 'additionalImages', '.name')].flatMap(({ path, text }) =>
      attempt(view, path, () => parseReference(text)),
    ),
    ...readTexts(view, 'operators', '.catalog').flatMap(({ path, text }) =>
      attempt(view, path, () => parseCatalogSource(text, directory)),
    ),
  ]);
}

function checkRegistriesConf(view: View, { directory }: { readonly directory: string }) {
  const path = 'build.registriesConf';
  const text = view.text(path);
  if (text === undefined) return refuse([]);
  const file = resolve(directory, text);
  return refuse(
    attempt(view, path, () => {
      const bytes = readInputFile(file, { domain: 'registries-conf' });
      return parseRegistriesConf(bytes.toString('utf8'), file);
    }),
  );
}

/** Versions of packages and channels. */
function checkRanges(view: View): ReturnType<ConfigRule> {
  const packages = view.items('operators').flatMap((path) => view.items(`${path}.packages`));
  const channels = packages.flatMap((path) => view.items(`${path}.channels`));
  return refuse(
    [...packages, ...channels].flatMap((item) =>
      ['minVersion', 'maxVersion'].flatMap((name) => {
        const path = `${item}.${name}`;
        const text = view.text(path);
        if (text === undefined || completeVersion(text) !== undefined) return [];
        return [view.document.report.at(path, `"${text}" is not a version`)];
      }),
    ),
  );
}

/** Which of its registries will ask for a password nobody knows before they are asked. */
function checkPullSecrets(
  view: View,
  { secrets }: Parameters<ConfigRule>[1],
): ReturnType<ConfigRule> {
  const notes = (['pullSecret', 'build.embed.pullSecret'] as const).flatMap((path) =>
    listUnusableEntries(secrets.get(path) ?? '').map(({ key, reason }) => {
      const problem = `entry ${JSON.stringify(key)} cannot be used: ${reason}`;
      const hint = 'a build stops if this registry asks for a password';
      return view.document.report.at(path, problem, hint);
    }),
  );
  return { problems: [], notes };
}

/** What a reader refuses, at the place that it read. */
function attempt(view: View, path: string, read: () => unknown): readonly ConfigProblem[] {
  try {
    read();
    return [];
  } catch (error) {
    if (error instanceof SealiftError) {
      return [view.document.report.at(path, error.message, error.hint)];
    }
    // A file that cannot be read is a problem of its own rule.
    if (error instanceof Error && 'code' in error) return [];
    throw error;
  }
}
