import { text } from 'node:stream/consumers';
import { parse } from 'yaml';
import { serveLocally } from '../support/local-http.ts';

export type Change = {
  /** The command that sent it: `oc apply`. */
  readonly command: string;
  /** `PATCH /path?query`. */
  readonly request: string;
  readonly body: string;
};

export type StandInCluster = {
  /** `127.0.0.1:PORT`, plain HTTP. */
  readonly host: string;
  /** Every request that changes something, in order; whoever has read them may remove them. */
  readonly changes: Change[];
  /** Newest first: `Completed 4.21.3`. */
  readonly readHistory: () => readonly string[];
  /** Resolves when the next upgrade is requested, which takes effect but is never answered. */
  readonly loseNextAnswer: () => Promise<void>;
  readonly close: () => Promise<void>;
};

type MachineConfig = { readonly metadata: { readonly labels: Readonly<Record<string, string>> } };

type State = {
  /** Images and their versions. */
  readonly releases: ReadonlyMap<string, string>;
  readonly history: { state: 'Completed' | 'Partial'; version: string }[];
  /** Hexadecimal digests of releases that have a signature. */
  readonly signed: Set<string>;
  desired: string;
  machineConfig: MachineConfig | undefined;
  resourceVersion: number;
  readonly watchers: Set<() => void>;
  /** Annotations of the only health check. */
  annotations: Readonly<Record<string, string | null>>;
  lose: (() => void) | undefined;
};

const CONDITIONS = ['Available', 'Updated'].map((type) => ({ type, status: 'True' }));
const SIGNATURE = /^sha256-([0-9a-f]{64})-1$/;

/**
 * Stands in for the API server of a cluster with one node, and for its cluster version operator: a
 * release whose signature is there is accepted, is being applied at the next look, and is complete
 * after that. It remembers across the boots of its node.
 */
export async function startStandInCluster(
  version: string,
  releases: ReadonlyMap<string, string>,
): Promise<StandInCluster> {
  const state: State = {
    releases,
    history: [{ state: 'Completed', version }],
    signed: new Set(),
    desired: '',
    machineConfig: undefined,
    resourceVersion: 1,
    watchers: new Set(),
    annotations: {},
    lose: undefined,
  };
  const changes: Change[] = [];
  const server = await serveLocally((request, response) => {
    response.setHeader('connection', 'close');
    const { method = '', url: target = '', headers } = request;
    const url = new URL(target, 'http://cluster');
    const answer = async (body: string): Promise<object | undefined> => {
      if (method === 'GET') return await read(state, url);
      const command = String(headers['kubectl-command']);
      changes.push({ command, body, request: `${method} ${target}` });
      return change(state, { method, url, body });
    };
    text(request)
      .then(answer)
      .then((found) => found && response.end(JSON.stringify(found)))
      .catch((error: unknown) => {
        response.writeHead(422).end(String(error));
      });
  });
  return {
    host: server.host,
    changes,
    close: server.close,
    readHistory: () => state.history.map(({ state, version }) => `${state} ${version}`),
    loseNextAnswer: () =>
      new Promise((resolve) => {
        state.lose = resolve;
      }),
  };
}

async function read(state: State, { pathname, searchParams }: URL): Promise<object> {
  const name = pathname.slice(pathname.lastIndexOf('/') + 1);
  switch (name) {
    case 'version':
      return readClusterVersion(state);
    case 'machineconfigs':
      return await watchMachineConfigs(state, searchParams.get('resourceVersion'));
    case 'machinehealthchecks':
      return { items: [{ metadata: { name: 'hosts', annotations: state.annotations } }] };
    default: // a node, its pod, its pool, a definition
      return {
        metadata: { name },
        status: { conditions: CONDITIONS },
        items: [{ metadata: { name: 'host' }, spec: { nodeName: 'host' } }],
      };
  }
}

function readClusterVersion({ desired, history }: State): object {
  const answer = {
    spec: { desiredUpdate: { image: desired } },
    status: { history: structuredClone(history), conditions: CONDITIONS },
  };
  const [current] = history;
  if (current?.state === 'Partial') current.state = 'Completed';
  return answer;
}

/** Whoever has seen the present version is answered when there is another. */
async function watchMachineConfigs(state: State, seen: string | null): Promise<object> {
  if (seen === String(state.resourceVersion)) {
    await new Promise<void>((resolve) => state.watchers.add(resolve));
  }
  const { resourceVersion, machineConfig } = state;
  return {
    metadata: { resourceVersion: String(resourceVersion) },
    items: machineConfig === undefined ? [] : [machineConfig],
  };
}

type Request = { readonly method: string; readonly url: URL; readonly body: string };

/** @returns undefined when the answer is lost. */
function change(state: State, { method, url, body }: Request): object | undefined {
  const { pathname, searchParams } = url;
  if (pathname.endsWith('/clusterversions/version')) return requestUpgrade(state, body);
  if (pathname.startsWith('/apply/')) apply(state, pathname, body);
  if (pathname.includes('/machinehealthchecks/')) {
    const { metadata } = JSON.parse(body) as { metadata: Pick<State, 'annotations'> };
    state.annotations = metadata.annotations;
  }
  if (method === 'DELETE') {
    const [label = '', value] = (searchParams.get('labelSelector') ?? '').split('=');
    if (state.machineConfig?.metadata.labels[label] === value) replaceMachineConfig(state);
  }
  return {};
}

function requestUpgrade(state: State, body: string): object | undefined {
  const { image } = (
    JSON.parse(body) as { readonly spec: { readonly desiredUpdate: { readonly image: string } } }
  ).spec.desiredUpdate;
  const version = state.releases.get(image);
  const [, hex = ''] = image.split('@sha256:');
  if (version === undefined || !state.signed.has(hex)) throw new Error(`${image} is not trusted`);
  state.desired = image;
  state.history.unshift({ state: 'Partial', version });
  const { lose } = state;
  state.lose = undefined;
  lose?.();
  return lose === undefined ? {} : undefined;
}

function apply(state: State, pathname: string, body: string): void {
  const object: unknown = parse(body);
  if (pathname.includes('/MachineConfig/')) replaceMachineConfig(state, object as MachineConfig);
  if (pathname.includes('/ConfigMap/')) {
    const { binaryData = {} } = object as {
      readonly binaryData?: Readonly<Record<string, string>>;
    };
    for (const key of Object.keys(binaryData)) state.signed.add(SIGNATURE.exec(key)?.[1] ?? '');
  }
}

function replaceMachineConfig(state: State, next?: MachineConfig): void {
  state.machineConfig = next;
  state.resourceVersion += 1;
  for (const wake of state.watchers) wake();
  state.watchers.clear();
}
