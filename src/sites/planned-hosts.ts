import { existsSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { ConfigProblems } from '../base/errors.ts';
import { withoutUndefined } from '../base/lists.ts';
import { readConfigText } from '../config/load.ts';
import type { PlannedHosts } from '../media/rehearse/site.ts';
import { decodeYaml } from '../shape/document.ts';
import {
  integerFrom,
  LEFT_OUT,
  list,
  partial,
  type Shape,
  TEXT,
  type TypeOf,
} from '../shape/shape.ts';
import { PUBLIC_KEYS } from './documents.ts';
import { countNodes } from './rules/machine-pools.ts';
import { INSTALL_FILE, AGENT_FILE } from './site.ts';

/* Reads the hosts of a site from the files of an agent-based installation, as far as a medium has to fit them. */

const POOL = partial({ name: TEXT, replicas: integerFrom(0) }, LEFT_OUT);

const INSTALL_POOLS = partial({ controlPlane: POOL, arbiter: POOL, compute: list(POOL) }, LEFT_OUT);

const AGENT_HOSTS = partial(
  {
    hosts: list(
      partial(
        {
          role: TEXT,
          rootDeviceHints: partial({ minSizeGigabytes: integerFrom(0) }, LEFT_OUT),
        },
        LEFT_OUT,
      ),
    ),
  },
  LEFT_OUT,
);

type AgentHost = NonNullable<TypeOf<typeof AGENT_HOSTS>['hosts']>[number];

/**
 * Reads install-config.yaml, and agent-config.yaml beside it if there is one.
 *
 * @param path the file, or the folder of both
 * @throws ConfigProblems `config.problems`; ConfigError `config.missing`, `config.unreadable`
 */
export function readPlannedHosts(path: string, shownAs: string): readonly PlannedHosts[] {
  const install = isFolder(path) ? join(path, INSTALL_FILE) : path;
  const agent = join(dirname(install), AGENT_FILE);
  const show = (file: string): string => join(shownAs, relative(path, file));
  const pools = read(install, show(install), INSTALL_POOLS);
  const { hosts = [] } = existsSync(agent) ? read(agent, show(agent), AGENT_HOSTS) : {};
  return listPlanned(pools, hosts);
}

/** A path that cannot be looked at is reported when it is read. */
function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

function read<S extends Shape>(path: string, shownAs: string, shape: S): TypeOf<S> {
  const source = { text: readConfigText(path), file: shownAs, publicKeys: PUBLIC_KEYS };
  const { value, problems } = decodeYaml(source, shape);
  if (problems.length > 0) throw new ConfigProblems(shownAs, problems);
  return value;
}

function listPlanned(
  pools: TypeOf<typeof INSTALL_POOLS>,
  hosts: readonly AgentHost[],
): readonly PlannedHosts[] {
  const { master: masters, arbiter: arbiters, worker: workers } = countNodes(pools);
  const isSingle = masters === 1 && workers + arbiters === 0;
  const all: readonly PlannedHosts[] = [
    plan(isSingle ? 'single node' : 'control plane', masters, ofRole(hosts, 'master')),
    plan('arbiter', arbiters, ofRole(hosts, 'arbiter')),
    plan('worker', workers, ofRole(hosts, 'worker')),
  ];
  return all.filter(({ count, host }) => count > 0 || host === 'control plane');
}

/** Hosts without a role get any. */
const ofRole = (hosts: readonly AgentHost[], wanted: string): readonly AgentHost[] =>
  hosts.filter(({ role = '' }) => role === '' || role === wanted);

/**
 * A size counts if each host of the role asks for one: the least decimal gigabytes of a disk (assisted-service,
 * `internal/host/hostutil`).
 */
function plan(
  host: PlannedHosts['host'],
  count: number,
  hosts: readonly AgentHost[],
): PlannedHosts {
  const sizes = hosts.flatMap(({ rootDeviceHints }) => rootDeviceHints?.minSizeGigabytes ?? []);
  const isComplete = sizes.length === hosts.length && sizes.length >= count && count > 0;
  return {
    host,
    count,
    ...withoutUndefined({
      minDisk: isComplete
        ? sizes.reduce((least, size) => Math.min(least, size)) * 10 ** 9
        : undefined,
    }),
  };
}
