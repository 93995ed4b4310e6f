import { checkImage, findImageUrl, listClusters, listInfraEnvs, Refusal, remove } from './api.js';
import { busy, copyTemplate, find, say } from './dom.js';
import { formatUnits, showDetails } from './image-details.js';

/**
 * A cluster with one of its InfraEnvs. Another client of the API may have created one without the other.
 *
 * @typedef {{
 *   name: string, facts: string[], created: string,
 *   version: string, architecture?: string, cluster?: string, infraEnv?: string, isLastOfCluster: boolean,
 * }} Row
 */

const list = find('#clusters', HTMLUListElement);
const title = find('#clusters-title', HTMLElement);
const dialog = find('#delete-dialog', HTMLDialogElement);
const urlDialog = find('#url-dialog', HTMLDialogElement);

/** @type {(error: unknown) => boolean} */
let isSignedOut = () => false;

/** @type {(id: string, cluster: { name: string, version: string }) => Promise<void>} */
let edit = () => Promise.resolve();

/** @type {Row | undefined} */
let leaving;

/**
 * @param {object} callbacks
 * @param {(error: unknown) => boolean} callbacks.onSignedOut
 * @param {(id: string, cluster: { name: string, version: string }) => Promise<void>} callbacks.onEdit
 */
export function startList({ onSignedOut, onEdit }) {
  isSignedOut = onSignedOut;
  edit = onEdit;
  find('#delete-cancel', HTMLButtonElement).addEventListener('click', () => {
    dialog.close();
  });
  find('#url-close', HTMLButtonElement).addEventListener('click', () => {
    urlDialog.close();
  });
  const confirm = find('#delete-confirm', HTMLButtonElement);
  confirm.addEventListener('click', () => {
    void busy(confirm, deleteLeaving);
  });
}

/**
 * @param {string} [created] InfraEnv that was just created or changed
 * @param {string} [told]
 * @returns {Promise<void>}
 */
export async function showClusters(created, told = 'Ready: download its ISO, or copy the URL.') {
  const problem = find('#clusters-problem', HTMLElement);
  problem.textContent = '';
  let rows;
  try {
    rows = await readRows();
  } catch (error) {
    if (isSignedOut(error)) return;
    if (!(error instanceof Refusal)) throw error;
    problem.textContent = error.message;
    return;
  }
  const items = rows.map((row) => showRow(row));
  list.replaceChildren(...items);
  find('#no-clusters', HTMLElement).hidden = rows.length > 0;
  const item = items.find((_, i) => created !== undefined && rows[i]?.infraEnv === created);
  if (!item) return;
  find('.download', HTMLElement, item).focus();
  note(item, told);
}

/** @returns {Promise<Row[]>} the newest first */
async function readRows() {
  const [clusters, infraEnvs] = await Promise.all([listClusters(), listInfraEnvs()]);
  const byId = new Map(clusters.map((cluster) => [cluster.id, cluster]));
  /** @type {Map<string | undefined, number>} */
  const counts = new Map();
  for (const { cluster_id: id } of infraEnvs) counts.set(id, (counts.get(id) ?? 0) + 1);
  const bound = infraEnvs.map((infraEnv) => {
    const cluster = byId.get(infraEnv.cluster_id ?? '');
    return toRow({ cluster, infraEnv, isLastOfCluster: counts.get(cluster?.id) === 1 });
  });
  const without = clusters
    .filter(({ id }) => !counts.has(id))
    .map((cluster) => toRow({ cluster, isLastOfCluster: true }));
  return [...bound, ...without].sort((a, b) => b.created.localeCompare(a.created));
}

/**
 * @param {object} of
 * @param {import('./api.js').Cluster | undefined} of.cluster
 * @param {import('./api.js').InfraEnv} [of.infraEnv]
 * @param {boolean} of.isLastOfCluster
 * @returns {Row}
 */
function toRow({ cluster, infraEnv, isLastOfCluster }) {
  const { name, created_at: created } = cluster ?? infraEnv ?? NOTHING;
  return {
    name,
    facts: listFacts(cluster, infraEnv),
    version: infraEnv?.openshift_version ?? cluster?.openshift_version ?? '',
    created,
    isLastOfCluster,
    ...(cluster && { cluster: cluster.id }),
    ...(infraEnv && { infraEnv: infraEnv.id, architecture: infraEnv.cpu_architecture }),
  };
}

/**
 * @param {import('./api.js').Cluster | undefined} cluster
 * @param {import('./api.js').InfraEnv | undefined} infraEnv
 * @returns {string[]}
 */
function listFacts(cluster, infraEnv) {
  const { size_bytes: size, cpu_architecture: architecture = '' } = infraEnv ?? {};
  const facts = [
    cluster ? `OpenShift ${cluster.openshift_version}` : '',
    architecture,
    size === undefined ? '' : formatUnits(size),
    `created ${formatTime((cluster ?? infraEnv ?? NOTHING).created_at)}`,
    ...listRendezvous(infraEnv),
  ];
  return facts.filter((fact) => fact !== '');
}

/** @param {import('./api.js').InfraEnv | undefined} infraEnv */
function listRendezvous(infraEnv) {
  const { rendezvous_ip: address, rendezvous_ip_chosen: isChosen } = infraEnv ?? {};
  if (address !== undefined) {
    return [`rendezvous host ${address}, ${isChosen ? 'chosen from the hosts' : 'as given'}`];
  }
  const hasNetworks = !['', '[]'].includes(infraEnv?.static_network_config ?? '');
  const isWanted = isChosen !== undefined; // by the installer on the ISO
  return hasNetworks && isWanted ? ['no host has a static address'] : [];
}

/** @param {string} time */
const formatTime = (time) =>
  new Date(time).toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' });

const NOTHING = { name: '', created_at: '' };

/** @param {Row} row */
function showRow(row) {
  const item = copyTemplate('#cluster-template', HTMLLIElement);
  find('.name', HTMLElement, item).textContent = row.name;
  find('.facts', HTMLElement, item).textContent = row.facts.join(' · ');
  const { infraEnv, version, architecture = '' } = row;
  for (const button of item.querySelectorAll('button')) {
    const of = button.matches('.edit, .delete') ? '' : 'of ';
    button.setAttribute('aria-label', `${button.textContent} ${of}${row.name}`);
  }
  find('.delete', HTMLElement, item).addEventListener('click', () => {
    askBeforeDeleting(row);
  });
  if (infraEnv === undefined || row.cluster === undefined) {
    find('.download', HTMLElement, item).remove();
    find('.copy', HTMLElement, item).remove();
    find('.edit', HTMLElement, item).remove();
    find('.about', HTMLElement, item).remove();
    find('.image', HTMLElement, item).remove();
    const lacks =
      infraEnv === undefined ? 'It has no ISO.' : 'It is not bound to a cluster, so it has no ISO.';
    note(item, lacks);
    return item;
  }
  act(item, '.download', async () => {
    const { url } = await findImageUrl(infraEnv);
    await checkImage(url);
    startDownload(url);
    note(item, 'The download has started: see the downloads of your browser.');
  });
  act(item, '.about', async () => {
    const panel = find('.image', HTMLElement, item);
    const isOpening = panel.hidden;
    if (isOpening) {
      panel.hidden = false;
      await showDetails(panel, { infraEnv, version, architecture }).catch(closing(panel));
    } else panel.hidden = true;
    find('.about', HTMLElement, item).ariaExpanded = String(!panel.hidden);
  });
  act(item, '.edit', () => edit(infraEnv, row));
  act(item, '.copy', async () => {
    const { url, expires } = await findImageUrl(infraEnv);
    if (!(await copyText(url))) return;
    const until = expires && ` It is valid until ${formatTime(expires)}.`;
    note(item, `The URL is copied.${until ?? ''}`);
  });
  return item;
}

/**
 * Closes a panel that cannot be filled.
 *
 * @param {HTMLElement} panel
 * @returns {(error: unknown) => never}
 */
const closing = (panel) => (error) => {
  panel.hidden = true;
  throw error;
};

/**
 * Runs an action of a row, and shows its error in the row.
 *
 * @param {HTMLElement} item
 * @param {string} selector
 * @param {() => Promise<void>} work
 */
function act(item, selector, work) {
  const button = find(selector, HTMLButtonElement, item);
  const problem = find('.problem', HTMLElement, item);
  button.addEventListener('click', () => {
    void busy(button, async () => {
      problem.textContent = '';
      note(item, '');
      try {
        await work();
      } catch (error) {
        if (isSignedOut(error)) return;
        if (!(error instanceof Refusal)) throw error;
        problem.textContent = error.message;
      }
    });
  });
}

/**
 * @param {HTMLElement} item
 * @param {string} text
 */
const note = (item, text) => {
  say(find('.note', HTMLElement, item), text);
};

/**
 * Starts a download. The answer is an attachment, so the browser stays on the page.
 *
 * @param {string} url
 */
function startDownload(url) {
  const link = document.createElement('a');
  link.href = url;
  link.download = '';
  link.click();
}

/**
 * Copies a text; false if the browser does not allow it, as on a page without TLS.
 *
 * @param {string} text
 * @returns {Promise<boolean>}
 */
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = find('#url', HTMLTextAreaElement);
    field.value = text;
    urlDialog.showModal();
    field.select();
    return false;
  }
}

/** @param {Row} row */
function askBeforeDeleting(row) {
  leaving = row;
  find('#delete-title', HTMLElement).textContent = `Delete ${row.name}?`;
  find('#delete-problem', HTMLElement).textContent = '';
  dialog.showModal();
}

async function deleteLeaving() {
  if (!leaving) return;
  const { infraEnv, cluster, isLastOfCluster } = leaving;
  try {
    if (infraEnv !== undefined) await remove('infra-envs', infraEnv);
    if (cluster !== undefined && isLastOfCluster) await remove('clusters', cluster);
    await showClusters();
    dialog.close();
    title.focus();
  } catch (error) {
    if (isSignedOut(error)) {
      dialog.close();
      return;
    }
    if (!(error instanceof Refusal)) throw error;
    find('#delete-problem', HTMLElement).textContent = error.message;
  }
}
