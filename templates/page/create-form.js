import {
  checkForm,
  createCluster,
  createInfraEnv,
  listVersions,
  readContents,
  readInfraEnv,
  Refusal,
  remove,
  updateInfraEnv,
} from './api.js';
import { busy, find, say } from './dom.js';
import { startFiles } from './files.js';
import { startHostTable } from './host-table.js';
import { removeHosts, startHosts, updateHosts } from './hosts.js';
import { summarizeContents } from './image-details.js';
import { locateProblem } from './locate.js';
import { withoutPath } from './network-form.js';
import { needsNames, setMedium } from './ports.js';
import { clearField, clearProblems, showProblems } from './problems.js';
import {
  checkRequired,
  fillSettings,
  listChanged,
  readCluster,
  readSettings,
  withoutEmpty,
} from './values.js';

/** The form of a new cluster with its InfraEnv, and of an InfraEnv that is changed. */

const form = find('#create-form', HTMLFormElement);
const problem = find('#create-problem', HTMLElement);
const warned = find('#create-warnings', HTMLElement);
const status = find('#create-status', HTMLElement);
const version = find('#openshift-version', HTMLSelectElement);
const architecture = find('#cpu-architecture', HTMLSelectElement);
const name = find('#name', HTMLInputElement);

/** @type {Record<string, import('./api.js').Version>} */
let versions = {};

/** The InfraEnv that is changed, as the form showed it first. @type {{ id: string, settings: Record<string, unknown> } | undefined} */
let edited;

/** @type {(error: unknown) => boolean} */
let isSignedOut = () => false;

/**
 * @param {object} callbacks
 * @param {(infraEnv?: string, told?: string) => Promise<void>} callbacks.onChanged
 * @param {(error: unknown) => boolean} callbacks.onSignedOut true if the error means that a token is needed
 */
export function startForm({ onChanged, onSignedOut }) {
  isSignedOut = onSignedOut;
  startHosts();
  startHostTable(onSignedOut);
  startFiles(document);
  version.addEventListener('change', showArchitectures);
  architecture.addEventListener('change', () => void showContents());
  form.addEventListener('input', ({ target }) => {
    if (target instanceof Element) clearField(target);
  });
  find('#edit-cancel', HTMLButtonElement).addEventListener('click', () => {
    resetForm();
    name.focus();
  });
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void busy(find('#create', HTMLButtonElement), async () => {
      clearProblems(form, problem);
      warned.textContent = '';
      try {
        await submit(onChanged);
      } catch (error) {
        if (onSignedOut(error)) return;
        if (!(error instanceof Refusal)) throw error;
        showProblems([{ message: error.message }], problem);
      } finally {
        say(status, '');
      }
    });
  });
}

/** @param {(infraEnv?: string, told?: string) => Promise<void>} onChanged */
async function submit(onChanged) {
  const missing = checkRequired(edited === undefined);
  const settings = readSettings(missing.length > 0);
  const changed = edited ? listChanged(settings, edited.settings) : withoutEmpty(settings);
  say(status, 'Checking the values…');
  const cluster = readCluster();
  const of = edited ? { infra_env_id: edited.id } : { cluster };
  const shared = { cpu_architecture: architecture.value };
  const { problems } = await checkForm({
    ...of,
    infra_env: edited ? changed : { ...changed, ...withoutEmpty(shared) },
  });
  const others = problems.map(locateProblem).filter((each) => !hasField(missing, each.field));
  if (missing.length + others.length > 0) {
    showProblems([...missing, ...others], problem);
    return;
  }
  say(status, edited ? 'Saving the changes…' : 'Creating the cluster…');
  const { id, warnings } = edited
    ? await change(edited.id, changed)
    : await create(cluster, { ...changed, ...withoutEmpty(shared) });
  const told = edited ? 'The changes are saved' : 'The cluster is created';
  const note = edited ? 'Saved: its ISO has a new URL, and the one from before ends.' : undefined;
  resetForm();
  warned.textContent =
    warnings.length === 0 ? '' : `${told}, with warnings: ${warnings.map(nameHost).join('; ')}`;
  await onChanged(id, note);
}

/**
 * @param {readonly { field?: string }[]} problems
 * @param {string | undefined} field
 */
const hasField = (problems, field) => problems.some((each) => each.field === field);

/**
 * A warning with the number that the form gives to a host.
 *
 * @param {string} warning
 */
function nameHost(warning) {
  const [, index, line = '', text = ''] = HOST_WARNING.exec(warning) ?? [];
  return index === undefined ? warning : `host ${Number(index) + 1}: ${line}${withoutPath(text)}`;
}

const HOST_WARNING = /^static_network_config\[(\d+)\]\.network_yaml: (line \d+: )?(.*)$/s;

/** Requests the list of releases again: the store may have new ones. */
export async function showVersions() {
  versions = await listVersions();
  const names = Object.keys(versions).sort((a, b) => b.localeCompare(a, 'en', { numeric: true }));
  const chosen = version.value;
  version.replaceChildren(...names.map((each) => new Option(each)));
  version.value =
    chosen in versions ? chosen : (names.find((each) => versions[each]?.default) ?? names[0] ?? '');
  showArchitectures();
  const hasNone = 'This server has no release yet: put an ISO into its store, then refresh.';
  problem.textContent = names.length === 0 ? hasNone : '';
}

function showArchitectures() {
  const names = versions[version.value]?.cpu_architectures ?? [];
  architecture.replaceChildren(...names.map((each) => new Option(each)));
  find('#cpu-architecture-field', HTMLElement).hidden = names.length < 2;
  void showContents();
}

/** Shows what is on the ISO of the chosen release, and the fields that it needs. */
async function showContents() {
  const hint = find('#openshift-version-hint', HTMLElement);
  const chosen = { version: version.value, architecture: architecture.value };
  /** @type {import('./api.js').Contents | undefined} */
  let contents;
  try {
    if (chosen.version !== '') contents = await readContents(chosen.version, chosen.architecture);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error; // the server judges the values when they are sent
  }
  if (chosen.version !== version.value || chosen.architecture !== architecture.value) return;
  hint.textContent = contents ? summarizeContents(contents) : '';
  setMedium(contents?.has_agents ?? true);
  find('#port-names-hint', HTMLElement).hidden = !needsNames();
  find('#rendezvous-ip-unread', HTMLElement).hidden = !needsNames();
  updateHosts();
}

/**
 * Creates a cluster with its InfraEnv, or nothing: a cluster whose InfraEnv is refused is removed again.
 *
 * @param {{ name: string, openshift_version: string }} values
 * @param {object} settings
 * @returns {Promise<{ id: string, warnings: readonly string[] }>} the InfraEnv
 */
async function create(values, settings) {
  const cluster = await createCluster(values);
  try {
    const { infraEnv, warnings } = await createInfraEnv({
      ...settings,
      name: values.name,
      image_type: 'disconnected-iso',
      cluster_id: cluster.id,
    });
    return { id: infraEnv.id, warnings };
  } catch (error) {
    await remove('clusters', cluster.id).catch(ignore);
    throw error;
  }
}

/** A record that cannot be removed stays in the list, where the user can delete it. */
const ignore = () => undefined;

/**
 * @param {string} id
 * @param {object} changed
 */
async function change(id, changed) {
  const { infraEnv, warnings } = await updateInfraEnv(id, changed);
  return { id: infraEnv.id, warnings };
}

/**
 * Fills the form with an InfraEnv, to change it.
 *
 * @param {string} id
 * @param {{ name: string, version: string }} cluster
 */
export async function editInfraEnv(id, cluster) {
  const infraEnv = await readInfraEnv(id);
  resetForm();
  name.value = cluster.name;
  await fillSettings(infraEnv);
  edited = { id, settings: readSettings() };
  version.replaceChildren(new Option(cluster.version));
  architecture.replaceChildren(new Option(infraEnv.cpu_architecture));
  await showContents();
  showMode(`Edit ${cluster.name}`, listKept(infraEnv));
  for (const details of form.querySelectorAll(':scope > details')) {
    const filled = [...details.querySelectorAll('input, textarea')].some(
      (field) => 'value' in field && field.value !== '',
    );
    if (details instanceof HTMLDetailsElement) details.open = filled;
  }
  const title = find('#create-title', HTMLElement);
  title.scrollIntoView({ block: 'nearest' });
  find('#ssh-key', HTMLTextAreaElement).focus();
}

/**
 * Settings that other clients made and the form does not show.
 *
 * @param {import('./api.js').InfraEnv} infraEnv
 */
const listKept = (infraEnv) =>
  [
    infraEnv.ntp_sources === undefined
      ? ''
      : `the time servers ${infraEnv.ntp_sources}, which replace those of the release`,
    infraEnv.ignition_config_override === undefined ? '' : 'an Ignition config',
  ].filter((each) => each !== '');

/**
 * @param {string} title
 * @param {readonly string[]} [kept]
 */
function showMode(title, kept = []) {
  const isEdit = edited !== undefined;
  find('#create-title', HTMLElement).textContent = title;
  find('#create', HTMLElement).textContent = isEdit ? 'Save changes' : 'Create cluster';
  find('#edit-cancel', HTMLElement).hidden = !isEdit;
  find('#pull-secret-kept', HTMLElement).hidden = !isEdit;
  find('#kept', HTMLElement).textContent =
    kept.length === 0 ? '' : `Kept as it is: ${kept.join(' and ')}.`;
  for (const each of [name, version, architecture]) each.disabled = isEdit;
}

/** Clears the form, so that the secret does not stay on the page. */
export function resetForm() {
  const wasEdit = edited !== undefined;
  const chosen = version.value;
  edited = undefined;
  form.reset();
  find('#rendezvous-ip', HTMLInputElement).placeholder = '';
  removeHosts();
  showMode('New cluster');
  if (wasEdit) void showVersions().catch(isSignedOut);
  else version.value = chosen;
  showArchitectures();
  clearProblems(form, problem);
  warned.textContent = '';
  for (const filled of document.querySelectorAll('.filled')) filled.textContent = '';
  say(find('#hosts-note', HTMLElement), '');
  for (const details of form.querySelectorAll('details')) details.open = false;
}
