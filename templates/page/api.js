/**
 * The calls of the API. URLs are relative to the page, which may be below a path of a proxy.
 *
 * @typedef {{ id: string, name: string, openshift_version: string, created_at: string }} Cluster
 * @typedef {{ http_proxy?: string, https_proxy?: string, no_proxy?: string }} Proxy
 * @typedef {{
 *   id: string, name: string, cluster_id?: string, openshift_version?: string, cpu_architecture: string,
 *   rendezvous_ip?: string, rendezvous_ip_chosen?: boolean, size_bytes?: number, static_network_config?: string, kernel_arguments?: string, proxy?: Proxy,
 *   ssh_authorized_key?: string, additional_ntp_sources?: string, ntp_sources?: string,
 *   additional_trust_bundle?: string, ignition_config_override?: string, user_name?: string,
 *   created_at: string, updated_at: string, download_url: string, expires_at: string,
 * }} InfraEnv
 * @typedef {{ field: string, line?: number, column?: number, path?: string, message: string }} FieldProblem
 * @typedef {{ problems: FieldProblem[], warnings: string[] }} Verdict
 * @typedef {{ value?: unknown, line?: number, column?: number, message?: string }} NetworkRead
 * @typedef {{
 *   hosts: { row: number, values: Record<string, string> }[], columns: Record<string, string>,
 *   problems: { row: number, column?: string, message: string }[],
 * }} HostTable
 * @typedef {{ cpu_architectures: string[], default: boolean }} Version
 * @typedef {{ controller: string, url?: string, reasons: string[], note?: string }} ControllerVerdict
 * @typedef {{
 *   url: string, expires_at: string, size_bytes?: number, medium_digest?: string,
 *   controllers: ControllerVerdict[],
 * }} ImageUrl
 * @typedef {{
 *   openshift_version: string, size_bytes: number, has_agents: boolean, release_image?: string,
 *   images?: number, operators?: { name: string, versions: string[] }[],
 * }} Contents
 */

const V2 = 'api/assisted-install/v2';
const OWN = 'api/assisted-install/sealift';
const FORMS = `${OWN}/forms`;

/** Milliseconds to wait for an answer; no user waits longer. */
const LIMIT = 60_000;

/** The token, only in memory: it is neither stored nor in a URL. */
let bearer = '';

/** @param {string} token */
export const setToken = (token) => {
  bearer = token;
};

/** A refusal by the server; its message is for people. */
export class Refusal extends Error {
  /**
   * @param {number} status 0: no answer
   * @param {string} reason
   */
  constructor(status, reason) {
    super(reason);
    this.status = status;
  }
}

/** @returns {Promise<Record<string, Version>>} */
export const listVersions = async () =>
  /** @type {Record<string, Version>} */ (await call('GET', `${V2}/openshift-versions`));

/** @returns {Promise<Cluster[]>} */
export const listClusters = async () => /** @type {Cluster[]} */ (await listAll('clusters'));

/** @param {string} id */
export const readInfraEnv = async (id) =>
  /** @type {InfraEnv} */ (await call('GET', `${V2}/infra-envs/${id}`));

/** @returns {Promise<InfraEnv[]>} */
export const listInfraEnvs = async () => /** @type {InfraEnv[]} */ (await listAll('infra-envs'));

/**
 * Lists all records: as long as the answer names a next page, that one too.
 *
 * @param {'clusters' | 'infra-envs'} kind
 */
async function listAll(kind) {
  /** @type {unknown[]} */
  const all = [];
  for (let query = ''; ;) {
    const answer = await request('GET', `${V2}/${kind}${query}`);
    for (const each of /** @type {unknown[]} */ (await readJson(answer))) all.push(each);
    const [, next] = /<([^>]*)>; rel="next"/.exec(answer.headers.get('Link') ?? '') ?? [];
    if (next === undefined) return all;
    query = new URL(next, location.href).search; // the path may be another one behind a proxy
  }
}

/**
 * @param {string} version
 * @param {string} architecture
 */
export const readContents = async (version, architecture) => {
  const query = new URLSearchParams({ version, cpu_architecture: architecture });
  return /** @type {Contents} */ (await call('GET', `${OWN}/contents?${query.toString()}`));
};

/** @param {object} body */
export const createCluster = async (body) =>
  /** @type {Cluster} */ (await call('POST', `${V2}/clusters/disconnected`, body));

/** @param {object} body */
export const createInfraEnv = (body) => write('POST', `${V2}/infra-envs`, body);

/**
 * @param {string} id
 * @param {object} changed members that change
 */
export const updateInfraEnv = (id, changed) => write('PATCH', `${V2}/infra-envs/${id}`, changed);

/**
 * @param {'POST' | 'PATCH'} method
 * @param {string} path
 * @param {object} body
 * @returns {Promise<{ infraEnv: InfraEnv, warnings: string[] }>}
 */
async function write(method, path, body) {
  const answer = await request(method, path, body);
  const infraEnv = /** @type {InfraEnv} */ (await readJson(answer));
  return { infraEnv, warnings: readWarnings(answer) };
}

/**
 * All problems of the values of a form, by the rules of the server; nothing is stored.
 *
 * @param {{ infra_env_id?: string, cluster?: object, infra_env: object }} form
 */
export const checkForm = async (form) =>
  /** @type {Verdict} */ (await call('POST', `${FORMS}/check`, form));

/** @param {readonly string[]} networks in YAML */
export const readNetworks = async (networks) =>
  /** @type {NetworkRead[]} */ (await call('POST', `${FORMS}/networks`, { networks }));

/** @param {string} text table in CSV or TSV */
export const readHostTable = async (text) =>
  /** @type {HostTable} */ (await call('POST', `${FORMS}/host-table`, { text }));

/**
 * Reads the texts of `299 - "text", 299 - "text"`.
 *
 * @param {Response} answer
 */
const readWarnings = ({ headers }) =>
  [...(headers.get('Warning') ?? '').matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, text = '']) =>
    text.replaceAll(/\\(.)/g, '$1'),
  );

/**
 * Requests a new URL of an image: a URL may expire, and changes with its InfraEnv.
 *
 * @param {string} id
 * @returns {Promise<ImageUrl & { expires?: string }>}
 */
export async function findImageUrl(id) {
  const answer = await call('GET', `${V2}/infra-envs/${id}/downloads/image-url`);
  const image = /** @type {ImageUrl} */ (answer);
  const { expires_at: expires } = image;
  return expires.startsWith(NEVER) ? image : { ...image, expires };
}

/**
 * Asks for the SHA-256 of an image, which begins to be computed with that.
 *
 * @param {string} url of the image
 * @returns {Promise<{ sha256: string } | { share: number, seconds: number }>}
 */
export async function readSha256(url) {
  const answer = await send(`${toRelative(url)}.sha256`, {});
  if (answer.status !== 202) return { sha256: (await answer.text()).slice(0, 64) };
  const body = /** @type {{ hashed_bytes: number, size_bytes: number }} */ (await readJson(answer));
  const seconds = Number(answer.headers.get('Retry-After') ?? '5');
  return { share: body.hashed_bytes / Math.max(1, body.size_bytes), seconds };
}

/** Go's zero time. */
const NEVER = '0001-';

/**
 * Deletes a record; it is fine if it no longer exists.
 *
 * @param {'clusters' | 'infra-envs'} kind
 * @param {string} id
 */
export async function remove(kind, id) {
  try {
    await call('DELETE', `${V2}/${kind}/${id}`);
  } catch (error) {
    if (!(error instanceof Refusal && error.status === 404)) throw error;
  }
}

/**
 * Requests one byte of an image, so that an error is shown here and not by a download that fails.
 *
 * @param {string} url as the server gave it
 */
export async function checkImage(url) {
  const answer = await send(toRelative(url), { headers: { Range: 'bytes=0-0' } });
  await answer.body?.cancel();
}

/**
 * The URL of an image from this page: its last four parts are below any path.
 *
 * @param {string} url
 */
const toRelative = (url) => new URL(url).pathname.split('/').slice(-4).join('/');

/**
 * @param {'GET' | 'POST' | 'PATCH' | 'DELETE'} method
 * @param {string} path
 * @param {object} [body]
 * @returns {Promise<unknown>}
 */
async function call(method, path, body) {
  const answer = await request(method, path, body);
  return answer.status === 204 ? undefined : readJson(answer);
}

/**
 * @param {'GET' | 'POST' | 'PATCH' | 'DELETE'} method
 * @param {string} path
 * @param {object} [body]
 */
function request(method, path, body) {
  const headers = new Headers();
  if (bearer !== '') headers.set('Authorization', `Bearer ${bearer}`);
  if (body) headers.set('Content-Type', 'application/json');
  const text = body ? JSON.stringify(body) : null;
  return send(path, { method, headers, body: text });
}

/**
 * @param {string} url
 * @param {RequestInit} given
 * @returns {Promise<Response>}
 */
async function send(url, given) {
  /** @type {Response} */
  let answer;
  try {
    answer = await fetch(url, {
      ...given,
      cache: 'no-store',
      signal: AbortSignal.timeout(LIMIT),
    });
  } catch {
    throw new Refusal(0, 'The server does not answer. Check the connection, then try again.');
  }
  if (answer.ok) return answer;
  throw new Refusal(answer.status, await readReason(answer));
}

/**
 * Reads the reason of an error; in authentication errors, assisted-service calls it a message.
 *
 * @param {Response} answer
 */
async function readReason(answer) {
  try {
    const body = /** @type {{ reason?: string, message?: string }} */ (await readJson(answer));
    const reason = body.reason ?? body.message;
    if (reason !== undefined) return toSentence(reason);
  } catch {
    // Perhaps the page of a proxy: only its status is shown.
  }
  return `The server answered with status ${answer.status}.`;
}

/**
 * @param {Response} answer
 * @returns {Promise<unknown>}
 */
const readJson = (answer) => answer.json();

/** @param {string} text */
const toSentence = (text) =>
  `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?)]$/.test(text) ? '' : '.'}`;
