import type { FileProblem } from '../../base/errors.ts';
import type { AgentHost, AgentRole } from '../../openshift/agent/agent-cluster.ts';
import { FREE, type Plain } from '../../shape/shape.ts';
import { AGENT_PUBLIC_KEYS } from '../agent/documents.ts';
import { readSiteDocument } from '../documents.ts';
import type { Site, SiteFile } from '../site.ts';
import type { HostController } from './host-table.ts';

/* Owns what the resources of a site are made of, and the places of their findings. */

export type Members = Readonly<Record<string, unknown>>;

/** The kinds of resources that a site is written as. */
export const EXPORT_FORMS = ['clusterinstance', 'bmh', 'acm-import'] as const;

export type ExportForm = (typeof EXPORT_FORMS)[number];

export type ExportSettings = {
  readonly form: ExportForm;
  /** `metadata.name` of the ClusterImageSet of a hub; import resources need none. */
  readonly imageSet: string;
  /** The namespace of the templates of siteconfig on the hub. */
  readonly templateNamespace: string;
};

export type SiteExport = ExportSettings & {
  readonly site: Site;
  /** The cluster's name, which is also the namespace of its resources. */
  readonly cluster: string;
  readonly baseDomain: string;
  readonly files: readonly SiteFile[];
  readonly hosts: readonly ExportHost[];
  /** Only for an import. */
  readonly kubeconfig: string | undefined;
  readonly warn: TellFinding;
  /** The resources are not written then. */
  readonly refuse: TellFinding;
};

export type ExportHost = {
  /** Absent: the host has the name that DHCP or DNS gives it. */
  readonly hostname?: string;
  readonly role: AgentRole;
  /** True if the files of the site have no role. */
  readonly isRoleChosen: boolean;
  readonly interfaces: AgentHost['interfaces'];
  readonly network?: Plain;
  readonly rootDeviceHints?: Members;
  readonly nodeLabels: Readonly<Record<string, string>>;
  readonly bootMac?: string;
  readonly controller?: HostController;
  readonly place: ExportPlace;
};

export type ExportPlace = { readonly file: string; readonly path: string };

/** Adds a finding about a value of the site's files. */
export type TellFinding = (place: ExportPlace, problem: string, hint?: string) => void;

/** Findings with the place of the value in the files of the site, or in the resource that they were made of. */
export const createTelling =
  (
    files: readonly SiteFile[],
    findings: FileProblem[],
    severity: FileProblem['severity'],
  ): TellFinding =>
  ({ file: name, path }, problem, hint) => {
    const about = { severity, code: 'sites.export', ...(hint !== undefined && { hint }) };
    const file = files.find((each) => each.path === name);
    if (!file) {
      findings.push({ ...about, file: name, path, problem });
      return;
    }
    const { report } = readSiteDocument(file, FREE, AGENT_PUBLIC_KEYS);
    findings.push({ ...report(path, problem, { hideValue: true }), ...about });
  };
