import { SealiftError } from '../../base/errors.ts';
import { MAC_FORM, parseMacAddress } from '../../base/mac-address.ts';
import { isObject, objectOrEmpty, withoutUndefined } from '../../base/lists.ts';
import { findJsonFault } from '../../shape/json-fault.ts';
import type { Identity } from '../auth/identity.ts';
import { identify, readBody, type Exchange, type Service } from '../context.ts';
import { ApiFailure, type FieldProblem, requireUuid } from '../openapi.ts';
import type { Release } from '../store/entry.ts';
import { draftChange, draftNew } from '../infra-envs/drafts.ts';
import type {
  InfraEnv,
  InfraEnvParams,
  KernelArgument,
  StaticNetwork,
} from '../infra-envs/infra-env.ts';
import { judgeMaps, judgeNetworks } from '../infra-envs/networks.ts';
import { findInfraEnv } from '../infra-envs/routes.ts';
import { checkSettings, checkSize } from '../infra-envs/rules.ts';

/*
 * Owns the check of a form: the rules of `RegisterInfraEnv` and `UpdateInfraEnv` for each of its values, so
 * that all problems are told at once, each with its field. Nothing is stored.
 */

type Form = {
  /** InfraEnv to change; absent: a new one. */
  readonly infra_env_id?: string;
  readonly cluster?: { readonly name?: string; readonly openshift_version?: string };
  readonly infra_env: InfraEnvParams;
};

type Verdict = { readonly problems: readonly FieldProblem[]; readonly warnings: readonly string[] };

const MOST_PROBLEMS = 100;

/** Answers `sealiftCheckForm`. */
export async function checkForm(service: Service, exchange: Exchange): Promise<Response> {
  const { problems, warnings } = await judgeForm(service, exchange);
  return exchange.json({ problems: problems.slice(0, MOST_PROBLEMS), warnings });
}

async function judgeForm(service: Service, exchange: Exchange): Promise<Verdict> {
  const identity = await identify(service, exchange);
  const form = await readBody<Form>(service, exchange, 'form-check-params');
  const { infra_env: params, infra_env_id: id } = form;
  const before =
    id === undefined
      ? undefined
      : await findInfraEnv(service, requireUuid(id, 'infra_env_id'), identity);
  const single = [
    ...checkCluster(service, form.cluster),
    ...splitSettings(params).flatMap((each) => checkSetting(service, each)),
  ];
  const networks = await checkHosts(service, params.static_network_config);
  const problems = [...single, ...networks.problems];
  if (problems.length > 0) return { problems, warnings: [] };
  return {
    problems: await checkImage(service, form, { before, identity }),
    warnings: networks.warnings,
  };
}

/** Checks what throws, and gives its reason to a field. */
function tell(field: string, check: () => unknown): readonly FieldProblem[] {
  try {
    check();
    return [];
  } catch (error) {
    if (!(error instanceof ApiFailure) || error.status >= 500) throw error;
    return [{ field, message: withoutMember(error.message) }];
  }
}

/** A sentence without the name of the member in the API: its field is next to it. */
const withoutMember = (reason: string): string =>
  reason
    .replace(/^rendezvous_ip in body should match .*/, 'this is not an IPv4 or IPv6 address')
    .replace(/^pull secret for new infraEnv is invalid: |^Failed to validate HTTPS? Proxy: /, '')
    .replace(/^NO Proxy is a comma-separated list .*? later\.: /, '')
    .replace(/^[\w.[\]]+ in body /, '')
    .replace(/^SSH key is not valid: (?!line)/, 'this ')
    .replace(/^SSH key is not valid: /, '');

function checkCluster({ openApi }: Service, cluster: Form['cluster']): readonly FieldProblem[] {
  if (!cluster) return [];
  const sound = { name: 'name', openshift_version: '4' };
  return (['name', 'openshift_version'] as const).flatMap((member) =>
    tell(member, () =>
      openApi.check('disconnected-cluster-create-params', { ...sound, [member]: cluster[member] }),
    ),
  );
}

type Setting = { readonly field: string; readonly params: InfraEnvParams };

/** Splits settings that are checked one by one; hosts are checked apart. */
const splitSettings = (params: InfraEnvParams): readonly Setting[] =>
  Object.entries(params).flatMap(([member, value]): readonly Setting[] => {
    if (member === 'static_network_config' || member === 'name') return [];
    if (member === 'proxy') {
      return Object.entries(objectOrEmpty(value)).map(([name, each]) => ({
        field: `proxy.${name}`,
        params: { proxy: { [name]: each } },
      }));
    }
    if (member === 'kernel_arguments' && Array.isArray(value)) {
      return value.map((each: unknown, at) => ({
        field: `kernel_arguments[${at}]`,
        params: { kernel_arguments: [each as KernelArgument] },
      }));
    }
    return [{ field: member, params: { [member]: value } }];
  });

function checkSetting(
  { openApi, requiredRegistries: registries }: Service,
  { field, params }: Setting,
): readonly FieldProblem[] {
  const problems = tell(field, () => {
    openApi.check('infra-env-create-params', { name: 'name', pull_secret: '{}', ...params });
    checkSettings(params, { registries, isNew: true });
  });
  if (field !== 'pull_secret') return problems;
  return problems.map((problem) => ({
    ...problem,
    ...findJsonFault(String(params.pull_secret)),
  }));
}

async function checkHosts(service: Service, hosts: unknown = []): Promise<Verdict> {
  const malformed = tell('static_network_config', () =>
    service.openApi.check('infra-env-update-params', { static_network_config: withoutMacs(hosts) }),
  );
  if (malformed.length > 0) return { problems: malformed, warnings: [] };
  const networks = hosts as readonly StaticNetwork[];
  const maps = [...networks.flatMap(checkMacs), ...judgeMaps(networks).flatMap(problemsOf)];
  const { refusals, warnings } = await judgeNetworks(networks, service.networkTool);
  const own = refusals.flatMap(problemsOf).filter(({ path }) => path !== '' || maps.length === 0);
  return { problems: [...maps, ...own], warnings };
}

const problemsOf = ({ problems }: { readonly problems: readonly FieldProblem[] }) => problems;

/** Hosts with a MAC address that is right: the real ones are checked apart. */
const withoutMacs = (hosts: unknown): unknown =>
  mapObjects(hosts, (host) => ({
    ...host,
    mac_interface_map: mapObjects(host['mac_interface_map'], (entry) =>
      typeof entry['mac_address'] === 'string' ? { ...entry, mac_address: ANY_MAC } : entry,
    ),
  }));

const ANY_MAC = '52:54:00:00:00:01';

const mapObjects = (
  values: unknown,
  change: (value: Readonly<Record<string, unknown>>) => object,
): unknown =>
  Array.isArray(values)
    ? values.map((value: unknown) => (isObject(value) ? change(value) : value))
    : values;

const checkMacs = ({ mac_interface_map: map = [] }: StaticNetwork, host: number) =>
  map.flatMap(({ mac_address: mac = '' }, at): readonly FieldProblem[] => {
    if (mac === '' || parseMacAddress(mac) !== undefined) return [];
    const field = `static_network_config[${host}].mac_interface_map[${at}].mac_address`;
    return [{ field, message: `this is not a MAC address; write it as ${MAC_FORM}` }];
  });

type Owner = { readonly before: InfraEnv | undefined; readonly identity: Identity };

/** Checks that the medium can carry the values: its overlay is made. */
async function checkImage(
  service: Service,
  { cluster, infra_env: params }: Form,
  { before, identity }: Owner,
): Promise<readonly FieldProblem[]> {
  const { openshift_version: version = before?.openshift_version } = cluster ?? {};
  const draft = (given: InfraEnvParams): InfraEnv => ({
    ...(before
      ? draftChange(service, given, before)
      : draftNew(service, given, { cluster: undefined, identity })),
    ...(version !== undefined && { openshift_version: version }),
  });
  const infraEnv = draft(params);
  const large = tell('static_network_config', () => {
    checkSize(infraEnv);
  });
  if (large.length > 0 || version === undefined) return large;
  const architecture = infraEnv.cpu_architecture;
  const release = await service.releases.find(version, architecture);
  if (!release) {
    const message = `the store has no ISO of ${version} for ${architecture}`;
    return [{ field: 'openshift_version', message }];
  }
  return blame(params, (given) => explainUnfit(service, draft(given), release));
}

/** Names the member without which the image can be made. */
async function blame(
  params: InfraEnvParams,
  explain: (params: InfraEnvParams) => Promise<string | undefined>,
): Promise<readonly FieldProblem[]> {
  const message = await explain(params);
  if (message === undefined) return [];
  for (const member of SUSPECTS) {
    if (params[member] === undefined) continue;
    const others = withoutUndefined({ ...params, [member]: undefined });
    if ((await explain(others)) === undefined) return [{ field: member, message }];
  }
  return [{ field: '', message }];
}

/** Members that a medium may have no place for. */
const SUSPECTS = [
  'rendezvous_ip',
  'static_network_config',
  'kernel_arguments',
  'ignition_config_override',
] as const;

async function explainUnfit(
  { images }: Service,
  infraEnv: InfraEnv,
  release: Release,
): Promise<string | undefined> {
  try {
    return (await images.prepare(infraEnv, release)).refusal;
  } catch (error) {
    if (!(error instanceof ApiFailure) || error.status >= 500) throw error;
    return error.cause instanceof SealiftError ? error.cause.message : error.message;
  }
}
