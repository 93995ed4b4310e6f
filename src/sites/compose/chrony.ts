const HEAD = [
  'pool 0.rhel.pool.ntp.org iburst',
  'driftfile /var/lib/chrony/drift',
  'makestep 1.0 3',
  'rtcsync',
  'logdir /var/log/chrony',
];

/**
 * chrony.conf of a node, with a newline before its first line and none behind its last, as nodes have
 * always got it; undefined without sources, so that the node keeps its own.
 */
export function renderChronyConfig(sources: readonly string[]): string | undefined {
  if (sources.length === 0) return undefined;
  return ['', ...HEAD, ...sources.map((source) => `server ${source} iburst`)].join('\n');
}
