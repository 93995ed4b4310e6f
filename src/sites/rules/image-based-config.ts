import type { DocumentProblem } from '../../base/errors.ts';
import { checkNetworkConfig } from '../../nmstate/check.ts';
import { checkPlausibility, type ClusterNetworks } from '../network/plausibility.ts';
import type { Report } from '../../shape/report.ts';
import { invalid } from '../../shape/report.ts';
import type { WrittenImageBasedConfig } from '../document/site-shapes.ts';
import { explainSubdomain, isAddressOrDomain } from './resource-names.ts';

/** Of the kernel: longer names cannot be set. */
const LONGEST_HOSTNAME = 64;

/** The rules of image-based-config.yaml, and whether its network fits its cluster. */
export function checkImageBasedConfig(
  report: Report,
  written: WrittenImageBasedConfig,
  networks: ClusterNetworks,
): readonly DocumentProblem[] {
  const { additionalNTPSources = [], networkConfig } = written;
  const form = checkNetworkConfig(report, networkConfig);
  return [
    ...additionalNTPSources.flatMap((source = '', index) =>
      isAddressOrDomain(source) ? [] : [reportNtpSource(report, source, index)],
    ),
    ...checkHostname(report, written.hostname),
    ...form,
    // Invalid addresses cannot be checked.
    ...(form.length === 0 ? checkPlausibility(report, networkConfig, networks) : []),
  ];
}

function reportNtpSource(report: Report, source: string, index: number): DocumentProblem {
  const why = 'NTP server is not a valid IP or domain name';
  const shownPath = 'AdditionalNTPSources';
  return report(`additionalNTPSources[${index}]`, invalid(source, why), { shownPath });
}

function checkHostname(report: Report, hostname = ''): readonly DocumentProblem[] {
  if (hostname === '') return [];
  if (/^localhost\.localdomain$/i.test(hostname)) {
    const why = 'the node waits forever for another hostname';
    return [report('hostname', invalid(hostname, why), { hint: 'give the node a name' })];
  }
  const why =
    hostname.length > LONGEST_HOSTNAME
      ? `must be no more than ${LONGEST_HOSTNAME} characters`
      : explainSubdomain(hostname.toLowerCase());
  return why === undefined ? [] : [report('hostname', invalid(hostname, why))];
}
