import { IGNITION_VERSION, type IgnitionConfig } from '../../ignition/config.ts';
import { MACHINE_CONFIG_GROUP } from '../release/internal-release-image.ts';
import { formatManifest } from './manifests/extra-manifests.ts';

/** The pools that every cluster has. */
export const ROLES = ['master', 'worker'] as const;
export type Role = (typeof ROLES)[number];

export const ROLE_LABEL = `${MACHINE_CONFIG_GROUP}/role`;

type MachineConfig = Pick<IgnitionConfig, 'passwd' | 'storage' | 'systemd'> & {
  readonly name: string;
  readonly role: Role;
  readonly labels?: Readonly<Record<string, string>>;
};

/** A MachineConfig as YAML; the daemon takes Ignition of 3.2.0 in every release. */
export const formatMachineConfig = ({ name, role, labels, ...config }: MachineConfig): string =>
  formatManifest({
    apiVersion: `${MACHINE_CONFIG_GROUP}/v1`,
    kind: 'MachineConfig',
    metadata: { name, labels: { [ROLE_LABEL]: role, ...labels } },
    spec: { config: { ignition: { version: IGNITION_VERSION }, ...config } },
  });
