import { fetchPublic, readLimited } from '../../base/download/fetch.ts';
import { ConfigError, IntegrityError, RegistryError } from '../../base/errors.ts';
import type { Http, HttpResponse } from '../../base/http/http.ts';
import { TransientError } from '../../base/http/network-failure.ts';
import type { TlsOptions } from '../../base/http/tls.ts';
import { redactUrl } from '../../base/text/redact.ts';
import { formatDuration } from '../../base/text/words.ts';
import { withTimeLimit } from '../../base/wait.ts';
import { parseReference, type Reference } from '../../registry/index.ts';
import { decodeJson, GO_RULES, ifFaultless, requireDecoded } from '../../shape/decode.ts';
import { defaulted, FREE, LEFT_OUT, list, record, refine, TEXT } from '../../shape/shape.ts';
import { describeFinding } from '../../shape/words.ts';
import { archNames, type RpmArchitecture } from './bundle.ts';
import { compareVersions, isMinorVersion, isVersion, minorOf, stripBuild } from './version.ts';

/** Address at which Red Hat serves the update graph, unless UPDATE_URL_OVERRIDE names another. */
const UPDATE_GRAPH_URL = 'https://api.openshift.com/api/upgrades_info/graph';

/** The part of a graph that we read, in no order. Updates name their releases by version. */
export type UpdateGraph = {
  readonly nodes: readonly GraphNode[];
  readonly edges: readonly GraphEdge[];
  /** Updates that are recommended only to clusters without the risks. */
  readonly conditionalEdges: readonly (GraphEdge & { readonly risks: readonly UpgradeRisk[] })[];
};

export type GraphEdge = { readonly from: string; readonly to: string };

export type UpgradeRisk = {
  readonly name: string;
  readonly message: string;
  readonly url: string;
};

export type GraphNode = { readonly version: string; readonly payload: string };

export type GraphRelease = { readonly version: string; readonly payload: Reference };

export type GraphAccess = {
  readonly http: Http;
  readonly url?: string;
  readonly arch: RpmArchitecture;
  readonly signal: AbortSignal;
  readonly tls?: TlsOptions;
};

export type GraphQuery = GraphAccess & {
  /** `stable`, `fast`, `candidate`, `eus`; or with its minor version, `eus-4.20`. */
  readonly channel: string;
  /** `X.Y`, for its newest release, or a full version. */
  readonly version: string;
};

/** Milliseconds for one request, answer included. */
const TIMEOUT = 30_000;
/** Bytes; real graphs have less than 2 MiB. */
const MAX_SIZE = 64 * 1024 * 1024;
/** Maximum number; real graphs have a few hundred. */
const MAX_NODES = 5000;
const NEAREST = 5;

const NODE = record(
  {
    version: refine(TEXT, (version) => (isVersion(version) ? undefined : 'is not a version')),
    payload: TEXT,
  },
  LEFT_OUT,
);

const WORDS = defaulted(TEXT, () => '');
const RISK = record({ name: WORDS, message: WORDS, url: WORDS }, LEFT_OUT);

const CONDITIONAL = record(
  {
    edges: defaulted(list(record({ from: TEXT, to: TEXT }, LEFT_OUT)), () => []),
    risks: refine(list(RISK), ({ length }) => (length > 0 ? undefined : 'is empty')),
  },
  LEFT_OUT,
);

const GRAPH = record(
  {
    nodes: refine(list(NODE), ({ length }) =>
      length <= MAX_NODES ? undefined : `has more than ${MAX_NODES} nodes`,
    ),
    /** Pairs of places in `nodes`. */
    edges: defaulted(list(list(FREE)), () => []),
    conditionalEdges: defaulted(list(CONDITIONAL), () => []),
  },
  LEFT_OUT,
);

/**
 * Never another version than the wanted one.
 *
 * @throws ConfigError `release.not-found` with the nearest versions of the channel,
 * `release.version-malformed`; RegistryError `graph.refused`, `graph.malformed`, and the errors of
 * `fetchPublic`; IntegrityError `release.not-pinned` when the payload has no digest.
 */
export async function resolveInGraph(query: GraphQuery): Promise<GraphRelease> {
  const channel = formatChannel(query.channel, query.version);
  const graph = await fetchUpdateGraph(channel, query);
  const node = selectNode(graph, query.version, channel);
  const payload = parseReference(node.payload);
  if (payload.digest !== undefined) return { version: node.version, payload };
  throw new IntegrityError(
    'release.not-pinned',
    `update graph names release ${node.version} as ${node.payload}, which has no digest`,
  );
}

/** @param channel its whole name, `stable-4.20`; the graph is empty if it does not exist */
export function fetchUpdateGraph(channel: string, access: GraphAccess): Promise<UpdateGraph> {
  const url = graphUrl(access, channel);
  const { http, signal } = access;
  return http.retries.run({ host: url.host, signal }, () => fetchGraph(url, access));
}

export const mergeGraphs = (graphs: readonly UpdateGraph[]): UpdateGraph => ({
  nodes: graphs.flatMap(({ nodes }) => nodes),
  edges: graphs.flatMap(({ edges }) => edges),
  conditionalEdges: graphs.flatMap(({ conditionalEdges }) => conditionalEdges),
});

/** A name without a minor version gets the version's. */
export function formatChannel(channel: string, version: string): string {
  if (/-\d+\.\d+$/.test(channel)) return channel;
  const minor = minorOf(version);
  if (minor !== undefined) return `${channel}-${minor}`;
  throw new ConfigError('release.version-malformed', `version "${version}" is not X.Y or X.Y.Z`, {
    expected: 'X.Y or X.Y.Z',
    found: version,
  });
}

/** The newest node of a minor version, or exactly this one. Build metadata does not count. */
export function selectNode(
  graph: Pick<UpdateGraph, 'nodes'>,
  version: string,
  channel: string,
): GraphNode {
  const nodes = graph.nodes.map((node) => ({ ...node, version: stripBuild(node.version) }));
  const wanted = stripBuild(version);
  const found = isMinorVersion(wanted)
    ? nodes
        .filter((node) => minorOf(node.version) === wanted)
        .reduce<GraphNode | undefined>(newer, undefined)
    : nodes.find((node) => node.version === wanted);
  if (found) return found;
  const nearest = listNearest(
    nodes.map((node) => node.version),
    wanted,
  );
  throw new ConfigError('release.not-found', `release ${version} is not in channel ${channel}`, {
    expected: version,
    found: nearest.length === 0 ? 'an empty channel' : nearest.join(', '),
    hint:
      nearest.length === 0
        ? `check ocpRelease.channel: ${channel} has no releases for this architecture`
        : `choose one of the nearest in ${channel}: ${nearest.join(', ')}; or name a payload in ocpRelease.url`,
  });
}

const newer = (best: GraphNode | undefined, node: GraphNode): GraphNode =>
  best && compareVersions(best.version, node.version) >= 0 ? best : node;

/** Versions on both sides of the place of the wanted version, oldest first. */
function listNearest(versions: readonly string[], wanted: string): string[] {
  const sorted = [...new Set(versions)].sort(compareVersions);
  const full = isMinorVersion(wanted) ? `${wanted}.0` : wanted;
  const place = sorted.filter((version) => compareVersions(version, full) < 0).length;
  const start = Math.max(0, Math.min(place - 3, sorted.length - NEAREST));
  return sorted.slice(start, start + NEAREST);
}

/** @throws ConfigError `graph.url-malformed` */
export function parseGraphUrl(text: string): URL {
  if (URL.canParse(text)) return new URL(text);
  throw new ConfigError(
    'graph.url-malformed',
    `update graph address "${text}" is not a valid URL`,
    {
      hint: 'set UPDATE_URL_OVERRIDE to a whole https:// address',
    },
  );
}

function graphUrl({ url, arch }: GraphAccess, channel: string): URL {
  const whole = parseGraphUrl(url ?? UPDATE_GRAPH_URL);
  whole.searchParams.set('channel', channel);
  whole.searchParams.set('arch', archNames.toGo(arch));
  return whole;
}

async function fetchGraph(url: URL, { http, signal, tls }: GraphAccess): Promise<UpdateGraph> {
  const limit = { isOver: false };
  try {
    return await withTimeLimit(TIMEOUT, signal, async (limited) => {
      limited.addEventListener('abort', () => (limit.isOver = !signal.aborted));
      const response = await fetchPublic(http, {
        url,
        headers: { accept: 'application/json' },
        signal: limited,
        ...(tls && { tls }),
      });
      const text = await readText(response, url);
      if (response.status !== 200) throw refused(url, response.status, text);
      return parseGraph(text, url);
    });
  } catch (error) {
    if (!limit.isOver) throw error;
    throw new TransientError(
      'http.timeout',
      `${redactUrl(url)} took longer than ${formatDuration(TIMEOUT)} to answer`,
      { cause: error },
    );
  }
}

async function readText(response: HttpResponse, url: URL): Promise<string> {
  const text = (await readLimited(response, url, MAX_SIZE))?.toString('utf8');
  if (text !== undefined) return text;
  throw malformed(url, `has more than ${MAX_SIZE} bytes`);
}

/** Cincinnati's error body is `{"kind": "missing_params", "value": "in words"}`. */
const REFUSAL = record({ value: TEXT }, LEFT_OUT);

function refused(url: URL, status: number, text: string): RegistryError {
  const body = ifFaultless(decodeJson(REFUSAL, text));
  const words = body ? `: ${body.value.slice(0, 300)}` : '';
  return new RegistryError('graph.refused', `${redactUrl(url)} answers ${status}${words}`, {
    expected: '200',
    found: String(status),
  });
}

function parseGraph(text: string, url: URL): UpdateGraph {
  const decoded = decodeJson(GRAPH, text, GO_RULES);
  const read = requireDecoded(decoded, ([first]) =>
    malformed(url, `is not a graph: ${describeFinding(first)}`),
  );
  return {
    nodes: read.nodes,
    edges: read.edges.map((edge, index) => {
      const [from, to] = edge.map((at) => (typeof at === 'number' ? read.nodes[at] : undefined));
      if (from && to) return { from: from.version, to: to.version };
      throw malformed(url, `has no pair of nodes in edges[${index}]`);
    }),
    conditionalEdges: read.conditionalEdges.flatMap(({ edges, risks }) =>
      edges.map((edge) => ({ ...edge, risks })),
    ),
  };
}

const malformed = (url: URL, reason: string): RegistryError =>
  new RegistryError('graph.malformed', `update graph at ${redactUrl(url)} ${reason}`);
