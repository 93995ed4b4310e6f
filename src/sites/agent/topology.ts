import type { DocumentProblem } from '../../base/errors.ts';
import { type ReportProblem, invalid, unsupported } from '../../shape/report.ts';
import { checkPool, checkPoolName, checkDuplicate, countNodes } from '../rules/machine-pools.ts';
import { resolveNetworks } from '../rules/networks.ts';
import type { WrittenAgentInstall } from './documents.ts';

/*
 * Owns the rules of how many nodes of which role a cluster has, and on which platform (installer:
 * pkg/types/validation, pkg/asset/agent/installconfig.go).
 */

/** Platforms on which agents install clusters here. */
const AGENT_PLATFORMS = ['baremetal', 'none', 'external'] as const;

type PlatformName = (typeof AGENT_PLATFORMS)[number];

/** The one platform that is written; undefined if agents do not install on it. */
export const findPlatform = ({ platform = {} }: WrittenAgentInstall): PlatformName | undefined =>
  AGENT_PLATFORMS.find((name) => (platform[name] ?? undefined) !== undefined);

export function checkTopology(
  report: ReportProblem,
  written: WrittenAgentInstall,
): readonly DocumentProblem[] {
  const { controlPlane = {}, compute = [], arbiter } = written;
  return [
    ...checkAgentPlatform(report, written),
    ...checkReplicas(report, written),
    ...checkArbiter(report, written),
    ...checkPool(report, 'controlPlane', controlPlane),
    ...checkPoolName(report, 'controlPlane', {
      name: controlPlane.name ?? 'master',
      names: ['master'],
    }),
    ...(arbiter
      ? [
          ...checkPool(report, 'arbiter', arbiter),
          ...checkPoolName(report, 'arbiter', { name: arbiter.name ?? '', names: ['arbiter'] }),
        ]
      : []),
    ...compute.flatMap((pool = {}, index) => [
      ...checkPool(report, `compute[${index}]`, pool),
      ...checkPoolName(report, `compute[${index}]`, { name: pool.name ?? '', names: ['worker'] }),
      ...checkDuplicate(report, compute, index),
    ]),
  ];
}

const OTHERS = ['vsphere', 'nutanix'];

function checkAgentPlatform(
  report: ReportProblem,
  { platform = {} }: WrittenAgentInstall,
): readonly DocumentProblem[] {
  const names = Object.entries(platform)
    .filter(([, value]) => value !== null)
    .map(([name]) => name);
  const [first, ...more] = names;
  if (first === undefined) {
    const problem = invalid(
      '',
      `must specify one of the platforms (${AGENT_PLATFORMS.join(', ')})`,
    );
    return [report('platform', problem)];
  }
  if (more.length > 0) {
    return [
      report('platform', invalid(names.join(', '), 'must only specify a single type of platform')),
    ];
  }
  if ((AGENT_PLATFORMS as readonly string[]).includes(first)) {
    return checkExternal(report, platform);
  }
  const hint = OTHERS.includes(first)
    ? 'make this image with the openshift-install of the medium, which "sealift extract installer" writes'
    : undefined;
  return [report(`platform.${first}`, unsupported(first, AGENT_PLATFORMS), { hint })];
}

function checkExternal(
  report: ReportProblem,
  { external }: NonNullable<WrittenAgentInstall['platform']>,
): readonly DocumentProblem[] {
  const { platformName = '', cloudControllerManager: manager = '' } = external ?? {};
  const path = 'platform.external.cloudControllerManager';
  if (!['', 'External'].includes(manager))
    return [report(path, unsupported(manager, ['', 'External']))];
  if (platformName !== 'oci' || manager === 'External') return [];
  const why =
    'When using external oci platform, platform.external.cloudControllerManager must be set to External';
  return [report(path, invalid(manager, why))];
}

const MOST_MASTERS = 5;

function checkReplicas(
  report: ReportProblem,
  written: WrittenAgentInstall,
): readonly DocumentProblem[] {
  const { master, arbiter, worker } = countNodes(written);
  const path = 'controlPlane.replicas';
  if (master === 1) return checkSingleNode(report, written);
  const isTwo = master === 2 && (arbiter > 0 || hasFencing(written));
  if ((master >= 3 && master <= MOST_MASTERS) || isTwo) return [];
  if (master === 2) {
    const why =
      'The cluster must have exactly 2 dedicated control plane nodes and at least 1 arbiter node or the control plane ' +
      'nodes must have fencing credentials';
    return [report(path, invalid('2', why), { code: 'validation.sufficient-masters-count' })];
  }
  const supported = ['1', '3', '4', '5', '2 (with arbiter)', '2 (with fencing)'];
  return [report(path, unsupported(String(master), worker < 0 ? [] : supported))];
}

const hasFencing = ({ controlPlane }: WrittenAgentInstall): boolean =>
  (controlPlane?.fencing?.credentials ?? []).length > 0;

function checkSingleNode(
  report: ReportProblem,
  written: WrittenAgentInstall,
): readonly DocumentProblem[] {
  const { arbiter, worker } = countNodes(written);
  const platform = findPlatform(written);
  const { networkType, networkTypePath } = resolveNetworks(written.networking);
  return [
    ...(platform === 'baremetal'
      ? [
          report(
            'platform',
            invalid(
              platform,
              'Only platform none and external supports 1 ControlPlane and 0 Compute nodes',
            ),
          ),
        ]
      : []),
    ...(worker === 0
      ? []
      : [
          report(
            'compute',
            'Forbidden: Total number of compute replicas must be 0 when controlPlane.replicas is 1 for platform ' +
              `none or external. Found ${worker}`,
            { shownPath: 'compute.replicas', hint: 'write one pool "worker" with replicas: 0' },
          ),
        ]),
    ...(arbiter === 0
      ? []
      : [
          report(
            'arbiter.replicas',
            'Forbidden: Total number of arbiter replicas must be 0 when controlPlane.replicas is 1 for Single ' +
              `Node Openshift (SNO) cluster. Found ${arbiter}`,
          ),
        ]),
    ...(networkType === 'OVNKubernetes'
      ? []
      : [
          report(
            networkTypePath,
            invalid(
              networkType,
              'Only OVNKubernetes network type is allowed for Single Node OpenShift (SNO) cluster',
            ),
          ),
        ]),
  ];
}

function checkArbiter(
  report: ReportProblem,
  written: WrittenAgentInstall,
): readonly DocumentProblem[] {
  const { master, arbiter } = countNodes(written);
  if (arbiter === 0 || master === 1) return [];
  const why =
    master < 2
      ? 'number of controlPlane replicas must be at least 2 for arbiter deployments'
      : 'TNA (Two Node with Arbiter) configuration requires exactly 1 arbiter replica';
  const isRight = master >= 2 && (master !== 2 || arbiter === 1);
  return isRight ? [] : [report('arbiter.replicas', invalid(String(arbiter), why))];
}
