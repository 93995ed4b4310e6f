import type { DocumentProblem } from '../../base/errors.ts';
import { isAddressOrHostName, LONGEST_LABEL } from '../../base/host-name.ts';
import { parseAddress } from '../../base/ip-address.ts';
import { explainRegistryName, isRegistryHost, isRepository } from '../../registry/index.ts';
import { type ReportProblem, invalid } from '../../shape/report.ts';

/* Owns the rules of names: domains, image repositories and mirrors. */

type Source = {
  readonly source?: string;
  readonly mirrors?: readonly (string | undefined)[];
  readonly sourcePolicy?: string;
};

const SUBDOMAIN = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;

/** Explains what is wrong with a DNS-1123 subdomain in the words of Kubernetes, or undefined. */
export function explainSubdomain(text: string): string | undefined {
  if (text.length > 253) return 'must be no more than 253 characters';
  if (text.split('.').some((label) => label.length > LONGEST_LABEL))
    return `each label between dots must be no more than ${LONGEST_LABEL} characters`;
  return SUBDOMAIN.test(text)
    ? undefined
    : "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', " +
        'and must start and end with an alphanumeric character';
}

/** A domain name may end in a dot. */
export const explainDomain = (text: string): string | undefined =>
  explainSubdomain(text.replace(/\.$/, ''));

export const isAddressOrDomain = (text: string): boolean =>
  parseAddress(text) !== undefined ||
  (explainDomain(text) === undefined && isAddressOrHostName(text));

/** Checks `imageDigestSources`, and `imageContentSources`, which has the same form. */
export function checkImageSources(
  report: ReportProblem,
  list: string,
  sources: readonly (Source | undefined)[] | undefined,
): readonly DocumentProblem[] {
  return (sources ?? []).flatMap((source, index) => {
    const path = `${list}[${index}]`;
    const { mirrors = [], sourcePolicy = '' } = source ?? {};
    return [
      ...checkRepository(report, `${path}.source`, source?.source),
      ...mirrors.flatMap((mirror, at) => checkRepository(report, `${path}.mirrors[${at}]`, mirror)),
      ...(sourcePolicy === '' ? [] : explainPolicy(sourcePolicy, mirrors.length)).map((problem) =>
        report(`${path}.sourcePolicy`, problem),
      ),
    ];
  });
}

const SUFFIX =
  /(?::[\w][\w.-]{0,127})?(?:@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?$/;

/** Checks `releaseRegistry`, which takes the place of the registry of the release images. */
export function checkReleaseRegistry(report: ReportProblem, text = ''): readonly DocumentProblem[] {
  const why = text === '' ? undefined : explainRegistryName(text);
  return why === undefined ? [] : [report('releaseRegistry', invalid(text, why))];
}

/** Explains what is wrong with a repository `registry/path`, or with a whole registry `registry[:port]`. */
export function explainRepository(text: string): string | undefined {
  const { domain, rest } = splitDomain(text);
  if (/^[^:@]*\p{Lu}/u.test(rest)) {
    return 'failed to parse: invalid reference format: repository name must be lowercase';
  }
  const suffix = SUFFIX.exec(rest)?.[0] ?? '';
  const path = rest.slice(0, rest.length - suffix.length);
  if (!isRepository(path) || !isRegistryHost(domain ?? 'localhost'))
    return 'failed to parse: invalid reference format';
  // Docker's short names mean another repository than the one written.
  if (domain === undefined || domain === 'index.docker.io') return explainRegistry(text);
  return suffix === '' ? undefined : 'must be repository--not reference';
}

/** Warns of mirrors whose registry has no entry in the pull secret: it may refuse the nodes. */
export function warnOfMirrors(
  report: ReportProblem,
  sources: readonly (Source | undefined)[] | undefined,
  hosts: ReadonlySet<string>,
): readonly DocumentProblem[] {
  return (sources ?? []).flatMap((source, index) =>
    (source?.mirrors ?? []).flatMap((mirror = '', at) => {
      const host = mirror.split('/', 1)[0] ?? '';
      if (hosts.has(host) || hosts.has(mirror)) return [];
      const path = `imageDigestSources[${index}].mirrors[${at}]`;
      return [report(path, `the pull secret has no entry for the mirror's registry "${host}"`)];
    }),
  );
}

export const explainBoth = (count: number): string =>
  invalid(String(count), 'cannot set imageContentSources and imageDigestSources at the same time');

const POLICIES = ['NeverContactSource', 'AllowContactingSource'];

function explainPolicy(policy: string, mirrors: number): readonly string[] {
  const names = POLICIES.map((name) => `"${name}"`).join(' and ');
  return [
    ...(POLICIES.includes(policy) ? [] : [invalid(policy, `supported values are ${names}`)]),
    ...(mirrors === 0
      ? [invalid(policy, 'sourcePolicy cannot be configured without a mirror')]
      : []),
  ];
}

function checkRepository(
  report: ReportProblem,
  path: string,
  text = '',
): readonly DocumentProblem[] {
  const why = explainRepository(text);
  return why === undefined ? [] : [report(path, invalid(text, why))];
}

/** The text before the first slash is a registry only if it looks like one. */
function splitDomain(text: string): { readonly domain?: string; readonly rest: string } {
  const slash = text.indexOf('/');
  const head = text.slice(0, Math.max(slash, 0));
  const isDomain = /[.:A-Z]/.test(head) || head === 'localhost';
  return isDomain ? { domain: head, rest: text.slice(slash + 1) } : { rest: text };
}

function explainRegistry(text: string): string | undefined {
  const host = text.replace(/:\d*$/, '');
  if (parseAddress(host)) return undefined;
  const why = explainSubdomain(host);
  return why === undefined ? undefined : `the repository provided is invalid: ${why}`;
}
