import { ConfigError } from '../base/errors.ts';
import { withoutUndefined } from '../base/lists.ts';
import { parseMacAddress } from '../base/mac-address.ts';
import type { Plain } from '../shape/shape.ts';
import { type NetworkText, readNetworkText, type WrittenOf } from './document.ts';
import { formatNetworkConfig } from './format.ts';
import { judgeState } from './judge.ts';
import type { Keyfile } from './keyfile.ts';
import { normaliseKeyfile } from './keyfile.ts';
import { compareHosts } from './compare-hosts.ts';
import { checkMap, type MappedInterface, warnOfMap } from './mac-map.ts';
import { explainDifferences, judgeProfiles } from './network-manager.ts';
import { renderProfiles } from './profiles.ts';
import { type NetworkState, readInterfaces, readNetworkState } from './read.ts';
import type { MadeProfiles, NetworkTool } from './tool.ts';
import { type NetworkFinding, formatFinding } from './values.ts';
import { warnOfState } from './warnings.ts';

/*
 * Main file of the room: a document comes in, and its profiles and findings leave, the same for each
 * command. The room must not know for which product a network is.
 */

/** The network of one host, as in an NMStateConfig. */
export type HostNetwork = {
  /** nmstate, as YAML text; it may be made when it is read. */
  readonly networkConfig: string;
  /** Its values, if they are known; they save reading the text. */
  readonly value?: Plain;
  /** The file that holds only this configuration, for messages; absent if a resource names the interfaces. */
  readonly source?: string;
  /** The place of a value for messages, such as `net.yaml:4`, by its path in the document. */
  readonly placeOf?: (path: string) => string;
  /** Names in the configuration, each with the MAC address of its interface. */
  readonly interfaces: readonly MappedInterface[];
  /** The profiles of a network that is planned. */
  readonly keyfiles?: readonly Keyfile[];
};

export type NetworkVerdict = {
  readonly problems: readonly NetworkFinding[];
  /** Settings that are allowed, but that seldom work; empty if there are problems. */
  readonly warnings: readonly NetworkFinding[];
  /** Members that nmstate knows, and that are not translated here. */
  readonly untranslated: readonly NetworkFinding[];
};

export type PlannedNetwork = {
  readonly state: NetworkState;
  /** Empty if there are problems, or if the host applies the document itself. */
  readonly profiles: readonly Keyfile[];
  readonly verdict: NetworkVerdict;
  /** Findings of nmstatectl, which are in the verdict as well. */
  readonly ofTool: Pick<NetworkVerdict, 'problems' | 'warnings'>;
};

export type PlanNetworkOptions = {
  /** The installed nmstate, which judges every document and writes the profiles of the others. */
  readonly tool?: NetworkTool | undefined;
  readonly signal: AbortSignal;
  /** True if the host applies the document itself (`nmstatectl apply`) and needs no profiles. */
  readonly isApplied?: boolean;
};

/**
 * The network of a host in a file of its own, whose interfaces are found by the addresses in the document.
 *
 * @throws ConfigError `nmstate.malformed` for a text that is not YAML
 */
export function hostOfFile(networkConfig: string, source: string): HostNetwork {
  const { value, problem } = readNetworkText(networkConfig);
  if (problem !== undefined) throw malformed(`${source} ${problem}`);
  const interfaces = readInterfaces(value).flatMap(({ name, 'mac-address': mac }) =>
    mac === undefined ? [] : [{ name, macAddress: parseMacAddress(mac) ?? mac }],
  );
  return { networkConfig, interfaces, source };
}

type Judged = NetworkVerdict & { readonly state: NetworkState };

/**
 * Judges a parsed document without nmstate: the part of `planNetwork` that needs no other program.
 *
 * @param host absent if the interfaces have their names already, and no map gives them
 * @param writtenOf absent for values that Go read
 */
export function judgeNetwork(
  value: unknown,
  host?: Pick<HostNetwork, 'interfaces' | 'source'>,
  writtenOf?: WrittenOf,
): Judged {
  const { state, problems: unread, untranslated } = readNetworkState(value, writtenOf);
  if (unread.length > 0) return { state, problems: unread, warnings: [], untranslated };
  const { interfaces = [], source } = host ?? {};
  const isMapped = interfaces.length > 0;
  const hasOwnMap = isMapped && source === undefined;
  const problems = [
    ...judgeState(state, { isMapped }),
    ...(hasOwnMap ? checkMap(state, interfaces) : []),
  ];
  const warnings = [...warnOfState(state), ...(hasOwnMap ? warnOfMap(state, interfaces) : [])];
  return { state, problems, untranslated, warnings: problems.length > 0 ? [] : warnings };
}

/**
 * Plans the network of a host. The verdict on a document that is translated here is the same with
 * nmstatectl and without it, except for what nmstatectl itself adds: its refusal, and differences.
 */
export async function planNetwork(
  host: HostNetwork,
  { tool, signal, isApplied = false }: PlanNetworkOptions,
): Promise<PlannedNetwork> {
  const judged = judgeHost(host);
  if (judged.problems.length > 0) return finish(judged, {});
  const made = await tool?.makeProfiles(withUsualMacs(host.networkConfig), signal);
  return made ? takeMade(judged, made) : finishAlone(judged, isApplied);
}

/** A MAC address that NetworkManager does not read from a profile, or that is not as the kernel shows it. */
const OTHER_MAC = /mac-address["']?\s*:\s*["']?(?!(?:[\da-f]{2}:){5}[\da-f]{2})[\da-f]/i;

const withUsualMacs = (text: string): string =>
  OTHER_MAC.test(text) ? formatNetworkConfig(readNetworkText(text).value as Plain) : text;

function judgeHost(host: HostNetwork): Judged {
  if (host.value !== undefined) return judgeNetwork(host.value, host);
  const { value, problem, writtenOf } = readNetworkText(host.networkConfig);
  const judged = judgeNetwork(value, host, writtenOf);
  if (problem === undefined) return judged;
  const problems = [{ path: '', problem: `it ${problem}` }];
  return { state: judged.state, problems, warnings: [], untranslated: [] };
}

type Finished = {
  readonly profiles?: readonly Keyfile[];
  readonly problems?: readonly NetworkFinding[];
  readonly warnings?: readonly NetworkFinding[];
};

const finish = (
  judged: Judged,
  { profiles = [], problems = [], warnings = [] }: Finished,
): PlannedNetwork => ({
  state: judged.state,
  profiles,
  verdict: {
    problems: [...judged.problems, ...problems],
    warnings: [...judged.warnings, ...warnings],
    untranslated: judged.untranslated,
  },
  ofTool: { problems, warnings },
});

function takeMade(judged: Judged, made: MadeProfiles): PlannedNetwork {
  const isTranslated = judged.untranslated.length === 0;
  const profiles = isTranslated ? renderProfiles(judged.state) : [];
  if ('problem' in made) {
    const findings = [{ path: '', problem: made.problem }];
    const isOurs = isTranslated && made.isUnread === true;
    return finish(judged, isOurs ? { profiles, warnings: findings } : { problems: findings });
  }
  if (isTranslated) {
    return finish(judged, { profiles, warnings: explainDifferences(profiles, made.profiles) });
  }
  const problems = judgeProfiles(made.profiles);
  return finish(judged, { profiles: made.profiles.map(normaliseKeyfile), problems });
}

function finishAlone(judged: Judged, isApplied: boolean): PlannedNetwork {
  const [first] = judged.untranslated;
  if (!first) return finish(judged, { profiles: renderProfiles(judged.state) });
  if (isApplied) return finish(judged, {});
  return finish(judged, { problems: [{ ...first, hint: WAYS_OUT }] });
}

const WAYS_OUT =
  'install nmstate, whose nmstatectl writes the profiles of every network; a node of a ' +
  'configuration ISO applies the document itself';

/**
 * The profiles of a host that is planned, or of one that needs no other program.
 *
 * @throws ConfigError `nmstate.malformed`, `nmstate.unsupported`
 */
export const profilesOf = (host: HostNetwork): readonly Keyfile[] =>
  host.keyfiles ?? requireProfiles(finishJudged(host), host.placeOf ?? createPlaces(host));

function finishJudged(host: HostNetwork): PlannedNetwork {
  const judged = judgeHost(host);
  return judged.problems.length > 0 ? finish(judged, {}) : finishAlone(judged, false);
}

/**
 * Plans the hosts of one document: each gets its profiles.
 *
 * @param warn receives warnings, with their places
 * @throws ConfigError `nmstate.malformed`, `nmstate.unsupported`
 */
export async function planHosts(
  hosts: readonly HostNetwork[],
  { warn, ...options }: PlanNetworkOptions & { readonly warn: (warning: string) => void },
): Promise<readonly HostNetwork[]> {
  const planned: Planned[] = [];
  for (const host of hosts) {
    const plan = await planNetwork(host, options);
    const placeOf = host.placeOf ?? createPlaces(host);
    for (const each of plan.verdict.warnings) warn(formatFinding(each, placeOf(each.path)));
    const keyfiles = requireProfiles(plan, placeOf);
    planned.push({ host: withProfiles(host, keyfiles), state: plan.state, placeOf });
  }
  refuseShared(planned, warn);
  return planned.map(({ host }) => host);
}

const withProfiles = (host: HostNetwork, keyfiles: readonly Keyfile[]): HostNetwork => ({
  get networkConfig() {
    return host.networkConfig;
  },
  interfaces: host.interfaces,
  ...withoutUndefined({ value: host.value, source: host.source }),
  keyfiles,
});

type Planned = {
  readonly host: HostNetwork;
  readonly state: NetworkState;
  readonly placeOf: (path: string) => string;
};

function refuseShared(planned: readonly Planned[], warn: (warning: string) => void): void {
  const compared = compareHosts(
    planned.map(({ host: { interfaces }, ...rest }) => ({ interfaces, ...rest })),
  );
  const told = compared.flatMap(({ problems, warnings }, at) => {
    const place = planned[at]?.placeOf ?? (() => '');
    for (const each of warnings) warn(formatFinding(each, place(each.path)));
    return formatFindings(problems, place);
  });
  if (told.length > 0)
    throw malformed(told.slice(0, MOST_TOLD).join('; '), 'give each host its own');
}

const MOST_TOLD = 10;

/** Findings as texts, as many as one message can have. */
export const formatFindings = (
  findings: readonly NetworkFinding[],
  placeOf: (path: string) => string,
): readonly string[] =>
  findings.slice(0, MOST_TOLD).map((each) => formatFinding(each, placeOf(each.path)));

function requireProfiles(
  { profiles, verdict }: PlannedNetwork,
  placeOf: (path: string) => string,
): readonly Keyfile[] {
  const [first] = verdict.problems;
  if (!first) return profiles;
  const told = formatFindings(verdict.problems, placeOf).join('; ');
  throw first.hint === WAYS_OUT
    ? new ConfigError('nmstate.unsupported', told, { hint: WAYS_OUT })
    : malformed(told, first.hint);
}

const malformed = (problem: string, hint = 'correct the network configuration'): ConfigError =>
  new ConfigError('nmstate.malformed', `network configuration has no valid profiles: ${problem}`, {
    hint,
  });

/** Tells `FILE:LINE` of a path; empty if the document is in no file of its own. */
function createPlaces(host: HostNetwork): (path: string) => string {
  const { source } = host;
  if (source === undefined) return () => '';
  let text: NetworkText | undefined;
  return (path) => {
    text ??= readNetworkText(host.networkConfig); // most documents have no finding
    return `${source}:${text.placeOf(path)?.line ?? 1}`;
  };
}
