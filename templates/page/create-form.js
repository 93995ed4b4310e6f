import { checkImage, createCluster, createInfraEnv, listVersions, Refusal, remove } from './api.js';
import { busy, find, findField, say } from './dom.js';
import { removeHosts, startHosts } from './hosts.js';
import { clearField, clearProblems, showProblems } from './problems.js';
import { checkValues, locateProblem, readValues } from './values.js';

/** A pull secret with many registries has some 20 KiB. */
const FILE_LIMIT = 256 * 1024;

const form = find('#create-form', HTMLFormElement);
const problem = find('#create-problem', HTMLElement);
const status = find('#create-status', HTMLElement);
const version = find('#openshift-version', HTMLSelectElement);
const architecture = find('#cpu-architecture', HTMLSelectElement);

/** @type {Record<string, import('./api.js').Version>} */
let versions = {};

/**
 * @param {object} callbacks
 * @param {(infraEnv?: string) => Promise<void>} callbacks.onChanged
 * @param {(error: unknown) => boolean} callbacks.onSignedOut true if the error means that a token is needed
 */
export function startForm({ onChanged, onSignedOut }) {
  startHosts();
  version.addEventListener('change', showArchitectures);
  form.addEventListener('input', ({ target }) => {
    if (target instanceof Element) clearField(target);
  });
  for (const input of form.querySelectorAll('input[type=file]')) {
    if (input instanceof HTMLInputElement) fillFromFile(input);
  }
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void busy(find('#create', HTMLButtonElement), async () => {
      clearProblems(form, problem);
      const wrong = checkValues();
      if (wrong.length > 0) {
        showProblems(wrong, problem);
        return;
      }
      try {
        const { id, warnings } = await create();
        resetForm();
        problem.textContent = formatWarnings(warnings);
        await onChanged(id);
      } catch (error) {
        if (onSignedOut(error)) return;
        if (!(error instanceof Refusal)) throw error;
        showProblems([locateProblem(error.message)], problem);
        await onChanged();
      } finally {
        say(status, '');
      }
    });
  });
}

/** Requests the list of releases again: the store may have new ones. */
export async function showVersions() {
  versions = await listVersions();
  const names = Object.keys(versions).sort((a, b) => b.localeCompare(a, 'en', { numeric: true }));
  const chosen = version.value;
  version.replaceChildren(...names.map((name) => new Option(name)));
  version.value =
    chosen in versions ? chosen : (names.find((name) => versions[name]?.default) ?? names[0] ?? '');
  showArchitectures();
  const hasNone = 'This server has no release yet: put an ISO into its store, then refresh.';
  problem.textContent = names.length === 0 ? hasNone : '';
}

function showArchitectures() {
  const names = versions[version.value]?.cpu_architectures ?? [];
  architecture.replaceChildren(...names.map((name) => new Option(name)));
  find('#cpu-architecture-field', HTMLElement).hidden = names.length < 2;
}

/**
 * Creates a cluster with its InfraEnv, or nothing: a cluster that gets no image is removed again.
 *
 * @returns {Promise<{ id: string, warnings: readonly string[] }>} the InfraEnv
 */
async function create() {
  const values = readValues();
  /** @type {['clusters' | 'infra-envs', string][]} */
  const made = [];
  try {
    say(status, 'Creating the cluster…');
    const cluster = await createCluster(values.cluster);
    made.push(['clusters', cluster.id]);
    const { infraEnv, warnings } = await createInfraEnv({
      ...values.infraEnv,
      cluster_id: cluster.id,
    });
    made.push(['infra-envs', infraEnv.id]);
    say(status, 'Checking its ISO…');
    await checkImage(infraEnv.download_url);
    return { id: infraEnv.id, warnings };
  } catch (error) {
    for (const [kind, id] of made.reverse()) await remove(kind, id).catch(ignore);
    throw error;
  }
}

/** @param {readonly string[]} warnings */
const formatWarnings = (warnings) =>
  warnings.length === 0 ? '' : `The cluster is created, with warnings: ${warnings.join('; ')}`;

/** A record that cannot be removed stays in the list, where the user can delete it. */
const ignore = () => undefined;

/** Clears the form, so that the secret does not stay on the page. */
export function resetForm() {
  const chosen = version.value;
  form.reset();
  removeHosts();
  version.value = chosen;
  showArchitectures();
  clearProblems(form, problem);
  for (const filled of form.querySelectorAll('.filled')) filled.textContent = '';
  for (const details of form.querySelectorAll('details')) details.open = false;
}

/** @param {HTMLInputElement} input */
function fillFromFile(input) {
  const field = findField(input.dataset['fills'] ?? '');
  const note = input.nextElementSibling;
  if (!field || !note) throw new TypeError(`${input.id} fills no field`);
  input.addEventListener('change', () => {
    const file = input.files?.[0];
    if (!file) return;
    clearField(field);
    void readText(file).then(({ text, told }) => {
      field.value = text;
      say(note, told);
      input.value = '';
    });
  });
}

/**
 * @param {File} file
 * @returns {Promise<{ text: string, told: string }>}
 */
async function readText(file) {
  if (file.size > FILE_LIMIT) return { text: '', told: `${file.name} is larger than 256 KiB.` };
  try {
    return { text: await file.text(), told: `Filled in from ${file.name}.` };
  } catch {
    return { text: '', told: `${file.name} cannot be read.` };
  }
}
