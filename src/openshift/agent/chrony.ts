/* Owns what chrony.conf of a host gets: the settings of the release, and servers. */

/** The lines of the file of RHEL CoreOS besides its servers. */
export const CHRONY_SETTINGS = [
  'driftfile /var/lib/chrony/drift',
  'makestep 1.0 3',
  'rtcsync',
  'logdir /var/log/chrony',
] as const;

export const formatTimeServers = (sources: readonly string[]): readonly string[] =>
  sources.map((source) => `server ${source} iburst`);
