import { explainRequestUri } from '../../base/http/request-uri.ts';
import type { DocumentProblem } from '../../base/errors.ts';
import { findRepeated } from '../../base/lists.ts';
import { type ReportProblem, invalid, required, unsupported } from '../../shape/report.ts';
import { countNodes } from '../rules/machine-pools.ts';
import type { WrittenAgentHost, WrittenAgentInstall } from './documents.ts';

/* Owns the rules of fencing: how two nodes without an arbiter switch each other off. */

const PATH = 'controlPlane.fencing.credentials';

const listCredentials = ({ controlPlane }: WrittenAgentInstall): readonly Credential[] =>
  (controlPlane?.fencing?.credentials ?? []).map((credential = {}) => credential);

export function checkFencing(
  report: ReportProblem,
  written: WrittenAgentInstall,
): readonly DocumentProblem[] {
  const credentials = listCredentials(written);
  const { master, arbiter } = countNodes(written);
  const isTwo = master === 2 && arbiter === 0;
  const count = credentials.length;
  const found = `instead ${count} credentials were found`;
  if (isTwo && count !== 2 && count > 0) {
    const why = `there should be exactly two fencing credentials to support the two node cluster, ${found}`;
    return [report(PATH, `Forbidden: ${why}`)];
  }
  if (!isTwo && count > 0) {
    const why =
      'there should not be any fencing credentials configured for a non dual replica control plane ' +
      `(Two Nodes Fencing) cluster, ${found}`;
    return [report(PATH, `Forbidden: ${why}`)];
  }
  const ofEach = credentials.flatMap((credential, index) => [
    ...(['hostName', 'username', 'password', 'address'] as const).flatMap((member) =>
      (credential[member] ?? '') === ''
        ? [
            report(
              `${PATH}[${index}].${member}`,
              required(`${member} is required for fencing credential`),
            ),
          ]
        : [],
    ),
    ...checkFencingAddress(report, `${PATH}[${index}]`, credential),
  ]);
  return [...ofEach, ...checkRepeatedCredentials(report, credentials)];
}

type Credential = NonNullable<
  NonNullable<
    NonNullable<NonNullable<WrittenAgentInstall['controlPlane']>['fencing']>['credentials']
  >[number]
>;

const VERIFICATIONS = ['', 'Enabled', 'Disabled'];

function checkFencingAddress(
  report: ReportProblem,
  path: string,
  { address = '', certificateVerification = '' }: Credential,
): readonly DocumentProblem[] {
  const why = address === '' ? undefined : explainAddress(address);
  return [
    ...(why === undefined ? [] : [report(`${path}.address`, invalid(address, why))]),
    ...(VERIFICATIONS.includes(certificateVerification)
      ? []
      : [
          report(
            `${path}.certificateVerification`,
            unsupported(certificateVerification, VERIFICATIONS.slice(1)),
          ),
        ]),
  ];
}
/** The port of other schemes has to be written. */
function explainAddress(address: string): string | undefined {
  const [, scheme = ''] = /^([A-Za-z][A-Za-z0-9+.-]*):/.exec(address) ?? [];
  const fault = scheme === '' ? undefined : explainRequestUri(address);
  if (fault !== undefined) return `invalid URL format: ${fault}`;
  if (!address.includes('redfish')) {
    return 'fencing only supports redfish-compatible BMC addresses, IPMI is not supported';
  }
  const hasPort = /^[^/]*\/\/[^/]*:\d+(?:\/|$)/.test(address);
  return hasPort || /http|redfish/i.test(scheme)
    ? undefined
    : 'failed to parse redfish address, no port number found';
}

const checkRepeatedCredentials = (
  report: ReportProblem,
  credentials: readonly Credential[],
): readonly DocumentProblem[] =>
  (['hostName', 'address'] as const).flatMap((member) => {
    const values = credentials.map((credential) => credential[member] ?? '');
    return findRepeated(values.filter((value) => value !== '')).map((value) =>
      report(`${PATH}[${values.lastIndexOf(value)}].${member}`, `Duplicate value: "${value}"`),
    );
  });

/** The service finds a host by its name, and never tells that there was none. */
export function checkFencedHosts(
  report: ReportProblem,
  written: WrittenAgentInstall,
  hosts: readonly WrittenAgentHost[],
): readonly DocumentProblem[] {
  const names = hosts.map(({ hostname = '' }) => hostname);
  if (names.length === 0 || names.includes('')) return [];
  return listCredentials(written).flatMap(({ hostName = '' }, index) =>
    hostName === '' || names.includes(hostName)
      ? []
      : [report(`${PATH}[${index}].hostName`, invalid(hostName, 'no host has this name'))],
  );
}
