import { statSync } from 'node:fs';
import type { Digest } from '../../base/digest.ts';
import { unlessAbsent } from '../../base/disk/files.ts';
import type { FactKind } from '../../sites/facts.ts';
import type { EventListener } from '../../engine/engine.ts';
import type { Keys } from '../../sites/identity/keys.ts';
import type { Nmstate } from '../../nmstate/tool.ts';

/** Where sites come from. */
export type SitesRequest = {
  /** Folder, archive or table; absolute. */
  readonly sites: string;
  /** What is below it is named without it. */
  readonly cwd: string;
  /** Folder that a table fills; absolute. */
  readonly template?: string;
  /** Whether the folder is one site, whatever it is called. */
  readonly dropIn: boolean;
  /** Seconds since 1970: what is overdue by then is warned of. */
  readonly epoch: number;
  /** Whether unknown keys of install-config.yaml are only warned of. */
  readonly isLenient?: boolean;
  /** Version of the seed that the sites are installed from, where it is known. */
  readonly seedVersion?: string;
  /** Where `env:NAME` in inputs looks. */
  readonly env?: NodeJS.ProcessEnv;
  /** What several sites may have in common; it is warned of. */
  readonly shared?: ReadonlySet<FactKind>;
  /** What an earlier producer left: of the only site, or with a folder for each site. */
  readonly retainFrom?: string;
  /** Kubeconfig of the only site, which the earlier producer made. */
  readonly kubeconfig?: string;
};

/** Stands for the name of a site where there is one only. */
export const ONLY_SITE = '';

export type ConfigIsosRequest = SitesRequest & {
  /** Directory of everything that is written; absolute. */
  readonly out: string;
  /** Threads that make keys. */
  readonly jobs: number;
  /** Whether every site gets a new generation of keys, ids and password. */
  readonly rotate: boolean;
  /** Whether files that no build made are replaced; inputs never are. */
  readonly force?: boolean;
  /** Names of sites that get one, even where the one of before is lost. */
  readonly newIdentities?: ReadonlySet<string>;
  /** Numbers of generations to be used again, by the names of sites or `ONLY_SITE`. */
  readonly useGenerations?: ReadonlyMap<string, number>;
};

/**
 * What is read and never written. Not the folder of the only site, which is the output folder as well,
 * nor a folder of earlier outputs: the files in it may be replaced when their identity is in the state.
 */
export const listInputs = ({
  sites,
  template,
  kubeconfig,
  retainFrom,
  dropIn,
}: ConfigIsosRequest): readonly string[] =>
  [dropIn ? undefined : sites, template, kubeconfig, ifFile(retainFrom)].filter(
    (path) => path !== undefined,
  );

const ifFile = (path: string | undefined): string | undefined =>
  path !== undefined && unlessAbsent(() => statSync(path))?.isFile() ? path : undefined;

export type SiteTools = {
  readonly emit: EventListener;
  /** Milliseconds, for durations. */
  readonly now: () => number;
  readonly signal: AbortSignal;
  /** Sees every network configuration; without it, a warning says that it did not. */
  readonly nmstate?: Nmstate | undefined;
};

export type ConfigIsosTools = SiteTools & {
  readonly keys: Keys;
  /** Which program this is; default: what it was built as. */
  readonly program?: Digest;
};
