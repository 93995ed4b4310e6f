import type { DocumentProblem } from '../../base/errors.ts';
import type { ReportProblem } from '../../shape/report.ts';
import { explainAuths, listPullSecretHosts } from '../rules/credentials.ts';
import { warnOfMirrors } from '../rules/images.ts';
import { warnOfCertificates, warnOfDomain } from '../rules/warnings.ts';
import type { WrittenAgentInstall } from './documents.ts';

/** Values that are allowed and rarely intended, or that no program of an agent-based installation reads. */
export function warnOfAgentSite(
  report: ReportProblem,
  written: WrittenAgentInstall,
  { epoch }: { readonly epoch: number },
): readonly DocumentProblem[] {
  const { pullSecret = '', imageDigestSources } = written;
  return [
    ...warnOfDomain(report, written.baseDomain),
    ...warnOfMirrors(report, imageDigestSources, listPullSecretHosts(pullSecret)),
    ...explainAuths(pullSecret).map((why) => report('pullSecret', `${why}: no node can read it`)),
    ...warnOfCertificates(report, written.additionalTrustBundle, epoch * 1000),
    ...listIgnored(written).map(([path, value]) => report(path, `${path}: ${value} is ignored`)),
  ];
}

/** Members that openshift-install leaves out with the same words. */
function listIgnored(written: WrittenAgentInstall): readonly (readonly [string, string])[] {
  const { controlPlane, compute = [], credentialsMode = '', bootstrapInPlace, platform } = written;
  const { externalBridge, provisioningBridge, clusterOSImage } = platform?.baremetal ?? {};
  const found: readonly (readonly [string, string | undefined])[] = [
    ['controlPlane.hyperthreading', disabledOf(controlPlane?.hyperthreading)],
    ...compute.map(
      (pool, index) =>
        [`compute[${index}].hyperthreading`, disabledOf(pool?.hyperthreading)] as const,
    ),
    ['credentialsMode', credentialsMode || undefined],
    ['bootstrapInPlace.installationDisk', bootstrapInPlace?.installationDisk],
    ['platform.baremetal.externalBridge', externalBridge],
    ['platform.baremetal.provisioningBridge', provisioningBridge],
    ['platform.baremetal.clusterOSImage', clusterOSImage],
  ];
  return found.flatMap(([path, value]) =>
    value === undefined || value === '' ? [] : [[path, value] as const],
  );
}

const disabledOf = (mode = 'Enabled'): string | undefined =>
  mode === 'Enabled' ? undefined : mode;
