/** Rooms that a host needs, in bytes. Plain JSON. */
export type HostNeed = {
  readonly host: 'control plane' | 'worker' | 'arbiter' | 'single node';
  readonly cores: number;
  readonly memory: number;
  readonly disk: number;
  /** Contents of the disk beside OpenShift; absent without any. */
  readonly because?: string;
};

export type HostNeedsInput = {
  /** Such as `4.22`. */
  readonly minor: string;
  /** Bytes of the registry that each host copies to its disk; absent if no host copies. */
  readonly copied?: number;
  /** True if the cluster runs the registry of the release itself. */
  readonly hasInternalRegistry: boolean;
};

const GIB = 2 ** 30;
const GB = 10 ** 9;

/** Room that OpenShift itself takes of a disk before its images are copied. */
const SYSTEM = 40 * GB;

/** Disk that hosts of a cluster with its own registry need. */
const INTERNAL = 220 * GB;

/**
 * By the checks of the assisted service before an installation (assisted-service,
 * `internal/hardware/validator.go`, the defaults of its requirements), and the copy of the registry on top.
 */
export function listHostNeeds(input: HostNeedsInput): readonly HostNeed[] {
  const isOld = input.minor.localeCompare('4.22', undefined, { numeric: true }) < 0;
  const roles = [
    { host: 'control plane', cores: 4, memory: 16 * GIB, disk: 100 * GB },
    { host: 'worker', cores: 2, memory: 8 * GIB, disk: 100 * GB },
    { host: 'arbiter', cores: 2, memory: 8 * GIB, disk: 50 * GB },
    { host: 'single node', cores: isOld ? 8 : 4, memory: 16 * GIB, disk: 100 * GB },
  ] as const;
  return roles.map((role) => ({ ...role, ...growDisk(role, input) }));
}

function growDisk(
  { host, disk }: Pick<HostNeed, 'host' | 'disk'>,
  { copied, hasInternalRegistry }: HostNeedsInput,
): Pick<HostNeed, 'disk' | 'because'> {
  if (hasInternalRegistry && host !== 'worker') {
    return { disk: INTERNAL, because: "the cluster's own registry" };
  }
  return copied === undefined || copied + SYSTEM <= disk
    ? { disk }
    : { disk: copied + SYSTEM, because: 'a copy of the registry of the medium' };
}
