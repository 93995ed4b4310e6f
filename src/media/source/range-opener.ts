import type { Http } from '../../base/http/http.ts';
import type { RangeSource } from '../../base/random-access.ts';

/** What opens a source works with; it lives as long as the source is open. */
export type SourceTools = {
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  /** `/etc/containers`; absent: registries.conf of the system is not read. */
  readonly containersDir?: string;
  readonly signal: AbortSignal;
  readonly http: Http;
};

export type OpenedRanges = {
  readonly source: RangeSource;
  /** Who is asked, for messages of waiting: `example.com:8443`. */
  readonly host: string;
  readonly close?: () => Promise<void>;
};

/** Opens what an address of one scheme names; it can be parsed as a URL. */
export type RangeOpener = (text: string, tools: SourceTools) => Promise<OpenedRanges>;
