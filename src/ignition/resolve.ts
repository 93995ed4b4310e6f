import { IntegrityError } from '../base/errors.ts';
import { isObject, objectOrEmpty, withoutUndefined } from '../base/lists.ts';
import { formatCanonicalJson, type Json } from '../base/text/json.ts';
import { redactUrl } from '../base/text/redact.ts';
import { parseIgnition } from './config.ts';
import { mergeConfigs } from './merge.ts';
import { decodeResource, hasHash } from './resource.ts';
import type { IgnitionConfig, MergedResources, IgnitionResource } from './schema.ts';

/** A config that another one names in `ignition.config` and whose contents are not known here. */
export type Unresolved = {
  /** The URL without its secrets; of a `data:` URL, which may be a secret as a whole, the scheme. */
  readonly source: string;
  readonly reason: string;
};

type ResolvedConfig = {
  /** The merged config. Configs that are not known remain in its `ignition.config`. */
  readonly config: IgnitionConfig;
  readonly unresolved: readonly Unresolved[];
};

/**
 * Resolves `ignition.config` as Ignition does before it applies a config (Ignition: `RenderConfig`): the config
 * of `replace` takes the place of everything, those of `merge` are merged in their order, each after its own are
 * resolved. Only `data:` URLs are read, at most 100 configs, 32 levels and 64 MiB.
 */
export function resolveConfig(config: IgnitionConfig): ResolvedConfig {
  const unresolved: Unresolved[] = [];
  const left: Budget = { bytes: MAX_BYTES, configs: MAX_CONFIGS, entries: MAX_ENTRIES };
  return { config: resolve(config, { left, unresolved, depth: 0 }), unresolved };
}

/** Reads a configuration with the configs that it holds merged. @throws the errors of `parseIgnition` */
export const parseResolved = (text: string, name: string): IgnitionConfig =>
  resolveConfig(parseIgnition(text, name)).config;

/** True if two configs have the same entries; entries with a name or a path may have another order. */
export const isSameConfig = (one: IgnitionConfig, other: IgnitionConfig): boolean =>
  formatCanonicalJson(sortEntries(one)) === formatCanonicalJson(sortEntries(other));

const MAX_BYTES = 64 << 20;
const MAX_CONFIGS = 100;
const MAX_DEPTH = 32;

/** Entries of all configs that may be merged; each merge goes through all that were merged before. */
const MAX_ENTRIES = 100_000;

type Budget = { bytes: number; configs: number; entries: number };
type Resolving = {
  readonly left: Budget;
  readonly unresolved: Unresolved[];
  readonly depth: number;
};

function resolve(config: IgnitionConfig, state: Resolving): IgnitionConfig {
  const { merge = [], replace } = config.ignition.config ?? {};
  if (replace?.source !== undefined) {
    // Ignition reads nothing else of this config, known or not.
    return open(replace, state) ?? { ignition: config.ignition };
  }
  const children = merge.map((resource) => ({ resource, child: open(resource, state) }));
  const rest = children.flatMap(({ resource, child }) => (child ? [] : [resource]));
  return children.reduce<IgnitionConfig>(
    (merged, { child }) => (child ? mergeConfigs(merged, child) : merged),
    rest.length === merge.length ? config : withMerge(config, rest),
  );
}

function withMerge(config: IgnitionConfig, merge: MergedResources): IgnitionConfig {
  const { ignition } = config;
  const left = withoutUndefined({
    ...ignition.config,
    merge: merge.length > 0 ? merge : undefined,
  });
  const references = Object.keys(left).length > 0 ? left : undefined;
  return {
    ...config,
    ignition: {
      ...withoutUndefined({ ...ignition, config: references }),
      version: ignition.version,
    },
  };
}

/** Reads and resolves the config that a resource holds; undefined, with the reason noted, if it is not known. */
function open(resource: IgnitionResource, state: Resolving): IgnitionConfig | undefined {
  const { unresolved, depth } = state;
  const read = readHeld(resource, state);
  if ('config' in read) return resolve(read.config, { ...state, depth: depth + 1 });
  unresolved.push({ source: nameSource(resource), ...read });
  return undefined;
}

function readHeld(
  resource: IgnitionResource,
  { left, depth }: Resolving,
): { readonly config: IgnitionConfig } | { readonly reason: string } {
  if (!isHeld(resource)) return { reason: 'its contents are elsewhere' };
  if (depth === MAX_DEPTH) return { reason: `it is nested deeper than ${MAX_DEPTH} levels` };
  if (left.configs === 0) return { reason: `there are more than ${MAX_CONFIGS} configs` };
  left.configs--;
  const bytes = decodeResource(resource, left.bytes);
  if (!bytes) return { reason: 'it cannot be decoded, or is too large' };
  left.bytes -= bytes.length;
  if (!hasHash(bytes, resource)) return { reason: 'it has another hash than is given for it' };
  try {
    const config = parseIgnition(bytes.toString('utf8'), 'it');
    left.entries -= countEntries(config);
    return left.entries < 0 ? { reason: 'there are too many entries' } : { config };
  } catch (error) {
    if (error instanceof IntegrityError) return { reason: error.message };
    throw error;
  }
}

const countEntries = ({ passwd, storage, systemd }: IgnitionConfig): number =>
  [passwd, storage, systemd]
    .flatMap((section) => Object.values(section ?? {}) as readonly unknown[])
    .reduce<number>((sum, list) => sum + (Array.isArray(list) ? list.length : 0), 0);

const isHeld = ({ source = '' }: IgnitionResource): boolean => /^data:/i.test(source);

function nameSource(resource: IgnitionResource): string {
  const { source = '' } = resource;
  if (isHeld(resource)) return 'data:';
  return URL.canParse(source) ? redactUrl(source) : 'an address that is not a URL';
}

/** Sorts lists by the names or paths of their entries; the order of others has a meaning. */
function sortEntries(value: Json | undefined): Json {
  if (Array.isArray(value)) {
    const entries: readonly Json[] = value.map(sortEntries);
    return entries.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : Number(keyOf(a) > keyOf(b))));
  }
  if (!isObject(value)) return value ?? null;
  const members = Object.entries(value).map(([key, member]) => [key, sortEntries(member as Json)]);
  return Object.fromEntries(members) as Json;
}

const keyOf = (entry: Json): string => {
  const { name, path } = objectOrEmpty(entry);
  return typeof name === 'string' ? name : typeof path === 'string' ? path : '';
};
