import type { FactKind } from '../../config/sites/site-facts.ts';
import type { EventListener } from '../../engine/events.ts';
import type { Keys } from '../../openshift/image-based/identity/keys/rsa-keys.ts';
import type { Nmstate } from './ask-nmstate.ts';

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
};

export type ConfigIsosRequest = SitesRequest & {
  /** Directory of everything that is written; absolute. */
  readonly out: string;
  /** Threads that make keys. */
  readonly jobs: number;
  /** Whether kept keys and ids are put aside. */
  readonly rotate: boolean;
};

export type SiteTools = {
  readonly emit: EventListener;
  /** Milliseconds, for durations. */
  readonly now: () => number;
  readonly signal: AbortSignal;
  /** Sees every network configuration; without it, that it did not is told. */
  readonly nmstate?: Nmstate | undefined;
};

export type ConfigIsosTools = SiteTools & { readonly keys: Keys };
