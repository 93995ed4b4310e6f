/**
 * The calls of the API. URLs are relative to the page, which may be below a path of a proxy.
 *
 * @typedef {{ id: string, name: string, openshift_version: string, created_at: string }} Cluster
 * @typedef {{ id: string, name: string, cluster_id?: string, cpu_architecture: string, rendezvous_ip?: string, static_network_config?: string, created_at: string, download_url: string, expires_at: string }} InfraEnv
 * @typedef {{ cpu_architectures: string[], default: boolean }} Version
 */

const BASE = 'api/assisted-install/v2';

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
  /** @type {Record<string, Version>} */ (await call('GET', 'openshift-versions'));

/** @returns {Promise<Cluster[]>} */
export const listClusters = async () => /** @type {Cluster[]} */ (await call('GET', 'clusters'));

/** @returns {Promise<InfraEnv[]>} */
export const listInfraEnvs = async () =>
  /** @type {InfraEnv[]} */ (await call('GET', 'infra-envs'));

/** @param {object} body */
export const createCluster = async (body) =>
  /** @type {Cluster} */ (await call('POST', 'clusters/disconnected', body));

/**
 * @param {object} body
 * @returns {Promise<{ infraEnv: InfraEnv, warnings: string[] }>}
 */
export async function createInfraEnv(body) {
  const answer = await request('POST', 'infra-envs', body);
  const infraEnv = /** @type {InfraEnv} */ (await readJson(answer));
  return { infraEnv, warnings: readWarnings(answer) };
}

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
 * @returns {Promise<{ url: string, expires?: string }>}
 */
export async function findImageUrl(id) {
  const answer = await call('GET', `infra-envs/${id}/downloads/image-url`);
  const { url, expires_at: expires } = /** @type {{ url: string, expires_at: string }} */ (answer);
  return expires.startsWith(NEVER) ? { url } : { url, expires };
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
    await call('DELETE', `${kind}/${id}`);
  } catch (error) {
    if (!(error instanceof Refusal && error.status === 404)) throw error;
  }
}

/**
 * Requests one byte of an image, so that an error is shown here and not by a download that fails.
 *
 * @param {string} url as the server gave it; its last five parts are below any path
 */
export async function checkImage(url) {
  const { pathname, search } = new URL(url);
  const path = pathname.split('/').slice(-5).join('/');
  const answer = await send(path + search, { headers: { Range: 'bytes=0-0' } });
  await answer.body?.cancel();
}

/**
 * @param {'GET' | 'POST' | 'DELETE'} method
 * @param {string} path
 * @param {object} [body]
 * @returns {Promise<unknown>}
 */
async function call(method, path, body) {
  const answer = await request(method, path, body);
  return answer.status === 204 ? undefined : readJson(answer);
}

/**
 * @param {'GET' | 'POST' | 'DELETE'} method
 * @param {string} path
 * @param {object} [body]
 */
function request(method, path, body) {
  const headers = new Headers();
  if (bearer !== '') headers.set('Authorization', `Bearer ${bearer}`);
  if (body) headers.set('Content-Type', 'application/json');
  const text = body ? JSON.stringify(body) : null;
  return send(`${BASE}/${path}`, { method, headers, body: text });
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
