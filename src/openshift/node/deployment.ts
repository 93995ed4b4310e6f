import {
  IGNITION_VERSION,
  textFile,
  type File,
  type IgnitionConfig,
} from '../../ignition/index.ts';
import { renderEnabledUnit, renderScript } from './registry.ts';

/* The live system that writes a disk image to the disk of a machine. */

export type DeploymentInput = DeploymentOptions & {
  readonly places: DeployedPlaces;
  readonly sshKeys: readonly string[];
  /** Hash of core's password. */
  readonly passwordHash?: string;
};

export type DeploymentOptions = {
  /** Path of the disk; a link is followed. */
  readonly targetDevice: string;
  /** Program that runs after the disk was written; its exit status does not count. */
  readonly postScript?: { readonly name: string; readonly bytes: Uint8Array };
  /** True if the disk has only zeros, so that zeros need not be written. */
  readonly isSparse: boolean;
  /** True if the system describes the disks and writes to none of them. */
  readonly isDryRun: boolean;
};

/** Blocks of 512 bytes in the disk image; ends are exclusive. */
export type DeployedPlaces = {
  readonly imageBlocks: number;
  readonly bootEnd: number;
  readonly rootStart: number;
  readonly recoveryStart: number;
  readonly dataStart: number;
  readonly dataEnd: number;
};

/** The names are those of openshift/appliance. */
const SCRIPT = 'deploy.sh';

/** Core may log in to look at the disks, and to write one by hand after a dry run. */
export function renderDeploymentIgnition(input: DeploymentInput): IgnitionConfig {
  const { sshKeys, passwordHash, postScript } = input;
  return {
    ignition: { version: IGNITION_VERSION },
    passwd: {
      users: [
        {
          name: 'core',
          ...(sshKeys.length > 0 && { sshAuthorizedKeys: sshKeys }),
          ...(passwordHash !== undefined && { passwordHash }),
        },
      ],
    },
    storage: {
      files: [
        renderDeployScript(input),
        ...(postScript
          ? [textFile(`/usr/local/bin/${postScript.name}`, postScript.bytes, 0o755)]
          : []),
      ],
    },
    systemd: { units: [renderEnabledUnit('deploy.service')] },
  };
}

const renderDeployScript = ({
  places,
  targetDevice,
  postScript,
  isSparse,
  isDryRun,
}: DeploymentInput): File =>
  renderScript(SCRIPT, {
    'target-device': targetDevice,
    'dry-run': isDryRun ? 'yes' : 'no',
    'sparse-clone': isSparse ? 'yes' : 'no',
    'post-script': postScript?.name ?? '',
    'image-blocks': String(places.imageBlocks),
    'boot-end': String(places.bootEnd),
    'root-start': String(places.rootStart),
    'recovery-start': String(places.recoveryStart),
    'data-start': String(places.dataStart),
    'data-end': String(places.dataEnd),
  });

/** A post-script of this name would replace the program that writes the disk. */
export const isDeployScript = (name: string): boolean => name === SCRIPT;
