import { formatSize } from '../../base/text/words.ts';
import type { HeldImage } from '../../media/held-image.ts';
import type { ConfiguredCluster } from '../../openshift/agent/cluster.ts';
import { type ReportRow, rowsOf, say } from '../terminal/report.ts';

/* A configuration image in rows, on its own or inside a medium, without secrets. */

export function listHeldImage(held: HeldImage): readonly ReportRow[] {
  const { size, releaseImage, cluster, problem, isProven } = held;
  const unproven = isProven ? '' : ', no digest covers it';
  return [
    ['config image', [`${formatSize(size)}, with private keys${unproven}`]],
    ...rowsOf('', problem === undefined ? [] : [say`${problem}`]),
    ...rowsOf('release image', releaseImage === undefined ? [] : [say`${releaseImage}`]),
    ...(cluster ? listCluster(cluster) : []),
  ];
}

export function listCluster(cluster: ConfiguredCluster): readonly ReportRow[] {
  const { name, nodes, hosts, rendezvousIp, certificates } = cluster;
  const counts = nodes
    ? `${nodes.masters} masters, ${nodes.arbiters} arbiters, ${nodes.workers} workers`
    : 'not set';
  return [
    ...rowsOf('cluster', name === undefined ? [] : [say`${name}`]),
    ['nodes', [`${counts}; ${hosts} hosts configured by MAC address`]],
    ['rendezvous IP', say`${rendezvousIp ?? 'not set'}`],
    ...rowsOf(
      'certificate',
      certificates.map(
        ({ path, notBefore, notAfter }) => say`${path}: ${notBefore} to ${notAfter}`,
      ),
    ),
  ];
}
