import type { InstallationSettings } from './installation-settings.ts';

type Sources = InstallationSettings['imageDigestSources'];

const HEAD = [
  'credential-helpers = []',
  'short-name-mode = ""',
  'unqualified-search-registries = []',
  '',
].join('\n');

/**
 * `/etc/containers/registries.conf` of the live system: mirrors of one source stand together, in the
 * order of the user and each once. Undefined when no source has a mirror.
 */
export function formatInstallationRegistriesConf(sources: Sources): string | undefined {
  const tables = [...mergeSources(sources)].filter(([, { mirrors }]) => mirrors.size > 0);
  if (tables.length === 0) return undefined;
  return [HEAD, ...tables.map(formatTable)].join('\n');
}

type Mirrors = { readonly mirrors: ReadonlySet<string>; readonly isBlocked: boolean };

function mergeSources(sources: Sources): ReadonlyMap<string, Mirrors> {
  const merged = new Map<string, Mirrors>();
  for (const { source, mirrors, sourcePolicy } of sources) {
    const known = merged.get(source);
    merged.set(source, {
      mirrors: new Set([...(known?.mirrors ?? []), ...mirrors]),
      isBlocked: known?.isBlocked === true || sourcePolicy === 'NeverContactSource',
    });
  }
  return merged;
}

function formatTable([source, { mirrors, isBlocked }]: readonly [string, Mirrors]): string {
  return [
    '[[registry]]',
    ...(isBlocked ? ['  blocked = true'] : []),
    `  location = ${quote(source)}`,
    '  mirror-by-digest-only = true',
    '  prefix = ""',
    ...[...mirrors].flatMap((mirror) => [
      ...['', '  [[registry.mirror]]', `    location = ${quote(mirror)}`],
    ]),
    '',
  ].join('\n');
}

/** A basic string of TOML 1.0; JSON's escapes are a subset of its. */
const quote = (text: string): string => JSON.stringify(text);
