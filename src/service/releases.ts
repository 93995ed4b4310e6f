/** A release that the store has an ISO of. */
export type Release = {
  readonly version: string;
  /** As RPM says it, which assisted-service does as well. */
  readonly architecture: string;
};

/** The releases that are served: each matches its version exactly. */
export type Releases = {
  readonly list: () => readonly Release[];
  readonly find: (version: string, architecture: string) => Release | undefined;
};

export const NO_RELEASES: Releases = { list: () => [], find: () => undefined };
