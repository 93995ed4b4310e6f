import { stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { digestOf } from '../../base/digest.ts';
import { claimOutput } from '../../base/disk/claim-output.ts';
import { writeFileAtomic } from '../../base/disk/files.ts';
import { readRegularFile } from '../../base/disk/open-file.ts';
import { UsageError, ConfigError } from '../../base/errors.ts';
import { describeNodeCatalogs } from '../../openshift/node/cluster.ts';
import {
  type CarriedHop,
  renderUpgradeHostMachineConfigs,
  renderUpgradeMachineConfig,
  renderUpgradeResources,
} from '../../openshift/node/upgrade.ts';
import { type Gate, minorOfGate } from '../../openshift/release/gates.ts';
import { describeSignatures, digestOfRelease } from '../../openshift/release/release.ts';
import { signaturesOf } from '../../openshift/release/signature.ts';
import type { UpgradePath } from '../../openshift/release/upgrade-path.ts';
import { type IsoPlace, describeOutput, type DescribedOutput } from '../../outputs/place.ts';
import { formatUpgradeLabel } from '../4-lay-out/lay-out-upgrade-iso.ts';
import type { MadeIso } from '../5-pour/pour.ts';
import type { SideFile, SideFiles, PreparedUpgradeIso, UpgradeIsoRequest } from '../request.ts';
import { summarizePayload, type PayloadSummary } from './live-iso.ts';

/* The plan and the report of an upgrade ISO, and the files that are written next to it. */

/** The report of `sealift plan upgrade-iso`. Sizes are bytes. */
export type UpgradeIsoPlan = PayloadSummary & {
  readonly product: 'upgrade-iso';
  readonly volumeId: string;
  readonly path: UpgradePath;
  /** Reasons for which the cluster refuses an update of the path, or waits for a person. */
  readonly gates: readonly Gate[];
  /** Keys of gates and names of risks that the MachineConfig accepts. */
  readonly acknowledged: readonly string[];
  readonly files: readonly string[];
  /** Commands that a person runs first, so that hosts can take the ISO. */
  readonly preparation: readonly string[];
  /** Commands that a person runs when every host has the ISO, in order. */
  readonly commands: readonly string[];
};

export type UpgradeFacts = UpgradeIsoPlan &
  DescribedOutput & {
    readonly unverifiedTls: readonly string[];
    /** Directory that stays on disk for the next build. */
    readonly cache: string;
  };

export type UpgradeIsoReport = UpgradeFacts & MadeIso;

type Carried = Pick<PreparedUpgradeIso, 'release' | 'path' | 'plan' | 'catalogs' | 'releases'>;

export const summarizeUpgradePlan = (prepared: PreparedUpgradeIso): UpgradeIsoPlan => ({
  ...summarizePayload(prepared),
  product: 'upgrade-iso',
  path: prepared.path,
  gates: prepared.gates,
  acknowledged: prepared.acknowledged,
  signatures: describeSignatures(prepared.releases),
  volumeId: formatUpgradeLabel(prepared.release),
  files: listSideFiles(prepared.sideFiles).map(({ path }) => path),
  preparation: [prepared.sideFiles.hosts].flatMap((file) => (file ? [formatApply(file)] : [])),
  commands: listCommands(prepared),
});

export const describeUpgradeIso = (
  request: UpgradeIsoRequest,
  prepared: PreparedUpgradeIso,
): UpgradeFacts => ({
  ...summarizeUpgradePlan(prepared),
  ...describeOutput(request),
  unverifiedTls: request.config.build.insecureRegistries,
  cache: request.workDir,
});

/**
 * Renders the files for a cluster: `upgrade-VERSION.yaml` for `oc apply`, and if they are wanted
 * `upgrade-machine-config-VERSION.yaml` and `upgrade-hosts.yaml`, all in the folder of the request.
 */
export function renderSideFiles(request: UpgradeIsoRequest, carried: Carried): SideFiles {
  const { folder, machineConfig, prepareHosts } = request;
  const { version, arch } = carried.release;
  const resources = renderResources(request, carried);
  const beside = (name: string, text: string): SideFile => ({
    path: join(folder, name),
    text: sealSideFile(text),
  });
  return {
    resources: beside(`upgrade-${version}.yaml`, resources),
    ...(machineConfig && {
      machineConfig: beside(
        `upgrade-machine-config-${version}.yaml`,
        renderUpgradeMachineConfig({
          hops: listHops(carried, request),
          arch,
          resources,
          acknowledged: request.acknowledged.filter((key) => minorOfGate(key) !== undefined),
        }),
      ),
    }),
    ...(prepareHosts && {
      hosts: beside('upgrade-hosts.yaml', renderUpgradeHostMachineConfigs()),
    }),
  };
}

const SEAL = /^# Made by sealift\. Without this line the file is (sha256:[0-9a-f]{64})\.\n/;

/** Adds a seal to a text, which shows if the text has been changed since it was made. */
export const sealSideFile = (text: string): string =>
  `# Made by sealift. Without this line the file is ${digestOf(Buffer.from(text))}.\n${text}`;

/**
 * Decides, before anything is poured, if the files next to an ISO may be written. The places may
 * be empty, or hold unchanged files of an earlier build; anything else only with `force`.
 */
export async function claimSideFiles(
  files: SideFiles,
  { output, inputs, workDir, force }: IsoPlace,
): Promise<void> {
  for (const { path } of listSideFiles(files)) {
    if (path === output) throw takesOutput(path);
    await claimOutput(
      { path, inputs, workDirs: [workDir] },
      {
        force,
        expected: 'an unchanged file of an earlier build',
        isReplaceable: () => isUnchanged(path),
      },
    );
  }
}

/** Returns their paths. Pouring takes hours: a file may have appeared, so the places are claimed again. */
export async function writeSideFiles(
  files: SideFiles,
  place: IsoPlace,
): Promise<readonly string[]> {
  await claimSideFiles(files, place);
  const all = listSideFiles(files);
  for (const { path, text } of all) await writeFileAtomic(path, text, 0o644);
  return all.map(({ path }) => path);
}

/** Lists the commands. A MachineConfig holds the resources and requests each update by itself. */
function listCommands({
  path,
  sideFiles: { resources, machineConfig },
}: PreparedUpgradeIso): readonly string[] {
  if (machineConfig) return [formatApply(machineConfig)];
  return [
    formatApply(resources),
    ...path.hops.map(({ image }) => `oc adm upgrade --allow-explicit-upgrade --to-image ${image}`),
  ];
}

const formatApply = ({ path }: SideFile): string => `oc apply -f ${basename(path)}`;

const listSideFiles = ({ resources, machineConfig, hosts }: SideFiles): SideFile[] =>
  [resources, machineConfig, hosts].filter((file) => file !== undefined);

const renderResources = (
  { config }: UpgradeIsoRequest,
  { release, plan, catalogs, releases }: Carried,
): string =>
  renderUpgradeResources({
    version: release.version,
    releases: releases.map((release) => ({
      version: release.version,
      digest: digestOfRelease(release),
      signatures: signaturesOf(release).map((base64) => Buffer.from(base64, 'base64')),
    })),
    mirrors: plan.mirrors,
    catalogs: describeNodeCatalogs(catalogs),
    useDefaultSourceNames: config.useDefaultSourceNames,
  });

function listHops(
  { release, path, releases }: Carried,
  { acknowledged }: UpgradeIsoRequest,
): readonly CarriedHop[] {
  return path.hops.map(({ version, image, risks }, index) => ({
    version,
    releaseImage: image,
    fromVersions: listBefore({ release, path }, index),
    isSigned: releases[index]?.signature?.status === 'verified',
    isAccepted: risks.length > 0 && risks.every(({ name }) => acknowledged.includes(name)),
  }));
}

/** The versions that a hop may update: the one before it on the path, else all that the payload names. */
function listBefore(
  { release, path }: Pick<Carried, 'release' | 'path'>,
  index: number,
): readonly string[] {
  const before = index === 0 ? path.from : path.hops[index - 1]?.version;
  if (before !== undefined) return [before];
  const { previous } = release.metadata;
  if (previous.length > 0) return previous;
  throw new ConfigError(
    'upgrade.no-previous',
    `release ${release.version} does not say which releases may be updated to it`,
    {
      hint: 'name the version of the cluster with --from, or leave --machine-config out',
    },
  );
}

const takesOutput = (path: string): UsageError =>
  new UsageError('output.reserved', `"${path}" is the name of a file next to the ISO`, {
    expected: 'another name for the ISO',
    found: basename(path),
    hint: 'name the ISO with the ending .iso',
  });

/** True if the seal fits the text. The file is regular, as `claimOutput` has seen. */
async function isUnchanged(path: string): Promise<boolean> {
  if ((await stat(path)).size > MAX_SIZE) return false;
  const text = (await readRegularFile(path))?.toString('utf8') ?? '';
  const digest = SEAL.exec(text)?.[1];
  return digest !== undefined && digestOf(Buffer.from(text.replace(SEAL, ''))) === digest;
}

/** Bytes; many times the size of a cluster's resources. */
const MAX_SIZE = 64 << 20;
