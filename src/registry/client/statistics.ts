/** What a host was asked and gave. Retries include bodies that broke off and were continued. */
export type HostStatistics = {
  readonly host: string;
  requests: number;
  retries: number;
  /** Of bodies, token and error answers included. */
  bytes: number;
};

export type Statistics = {
  of: (host: string) => HostStatistics;
  /** In order of first contact. */
  list: () => readonly Readonly<HostStatistics>[];
};

export function createStatistics(): Statistics {
  const hosts = new Map<string, HostStatistics>();
  return {
    of(host) {
      const known = hosts.get(host) ?? { host, requests: 0, retries: 0, bytes: 0 };
      hosts.set(host, known);
      return known;
    },
    list: () => [...hosts.values()].map((entry) => ({ ...entry })),
  };
}
