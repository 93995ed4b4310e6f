import { DiskError, InterruptedError, SealiftError, type FileProblem } from '../base/errors.ts';
import { withoutUndefined } from '../base/lists.ts';
import { redact } from '../base/text/redact.ts';
import type { DigestSource, InstallationProxy } from '../openshift/installation/mirrors.ts';

/** A file of a site's inputs, out of a folder, an archive or a filled template. */
export type SiteFile = {
  /** Path below the site's folder, `/` between names: `install-config.yaml`, `extra-manifests/a.yaml`. */
  readonly path: string;
  readonly bytes: Uint8Array;
  /** How the file is named in problems: a path, `sites.zip/alpha/install-config.yaml`, `sites.csv:12`. */
  readonly shownAs: string;
  /** Where relative paths of `file:` references begin; absent inside an archive. */
  readonly directory?: string;
};

/** The inputs of one configuration ISO, not looked into yet. */
export type SiteInput = {
  /** Name of the folder or of the row: what its ISO is called. */
  readonly name: string;
  readonly files: readonly SiteFile[];
};

/**
 * What of install-config.yaml reaches a configuration ISO, as written and without defaults: what the
 * user left out stays absent.
 */
export type SiteInstallConfig = {
  readonly clusterName: string;
  readonly baseDomain: string;
  readonly sshKey: string;
  readonly pullSecret: string;
  readonly proxy?: InstallationProxy;
  readonly additionalTrustBundle?: string;
  readonly additionalTrustBundlePolicy?: string;
  /** CIDRs in the user's order. */
  readonly machineNetworks?: readonly string[];
  /** Present, though empty, when the key is there. */
  readonly imageDigestSources?: readonly DigestSource[];
};

/** image-based-config.yaml. */
export type SiteImageBasedConfig = {
  readonly additionalNTPSources: readonly string[];
  readonly hostname: string;
  /** Normalised YAML text; absent when there is no network configuration. */
  readonly networkConfig?: string;
  readonly releaseRegistry?: string;
  readonly clusterId?: string;
  readonly infraId?: string;
  readonly nodeLabels: Readonly<Record<string, string>>;
};

/** A site whose inputs passed every check of its own. */
export type Site = {
  readonly name: string;
  readonly install: SiteInstallConfig;
  readonly imageBased: SiteImageBasedConfig;
  /** Sorted by name, bytes verbatim. */
  readonly extraManifests: readonly { readonly name: string; readonly bytes: Uint8Array }[];
};

/** Whether it concerns one site: a full disk or an abort concerns all, and a bug everyone. */
export const isOfOneSite = (error: unknown): error is SealiftError =>
  error instanceof SealiftError &&
  !(error instanceof DiskError || error instanceof InterruptedError);

/** What came between a good site and its ISO, as a problem of the site. */
export const findingOfError = (file: string, error: SealiftError): FileProblem => {
  const { code, message, expected, found, hint } = error;
  const values = { expected: expected && redact(expected), found: found && redact(found) };
  return {
    severity: 'error',
    code,
    file,
    problem: redact(`${message} [${code}]`),
    ...withoutUndefined({ ...values, hint }),
  };
};

/** What is allowed beside a site's ISO and yet worth a look. */
export const warnOfFile = (file: string, problem: string, hint?: string): FileProblem => ({
  severity: 'warning',
  code: 'sites.output',
  file,
  problem,
  ...withoutUndefined({ hint }),
});
