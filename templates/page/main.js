import { Refusal, setToken } from './api.js';
import { showClusters, startList } from './cluster-list.js';
import { editInfraEnv, resetForm, showVersions, startForm } from './create-form.js';
import { busy, find } from './dom.js';
import { clearProblems, showProblems } from './problems.js';

const work = find('#work', HTMLElement);
const signIn = find('#sign-in', HTMLElement);
const signOut = find('#sign-out', HTMLButtonElement);
const tokenForm = find('#sign-in-form', HTMLFormElement);
const token = find('#token', HTMLTextAreaElement);
const problem = find('#page-problem', HTMLElement);
const refresh = find('#refresh', HTMLButtonElement);

let hasToken = false;

const onSignedOut = askForToken;
startForm({ onChanged: showClusters, onSignedOut });
startList({ onSignedOut, onEdit: editInfraEnv });

// Unforeseen errors are shown as well.
window.addEventListener('unhandledrejection', ({ reason }) => {
  problem.textContent = `Something went wrong on this page: ${String(reason)}. Reload it.`;
});

refresh.addEventListener('click', () => void busy(refresh, () => showAll()));

signOut.addEventListener('click', () => {
  setToken('');
  hasToken = false;
  resetForm();
  find('#clusters', HTMLElement).replaceChildren();
  askForToken(new Refusal(401, ''));
});

tokenForm.addEventListener('submit', (event) => {
  event.preventDefault();
  void busy(find('button', HTMLButtonElement, tokenForm), async () => {
    clearProblems(tokenForm, problem);
    const given = token.value.trim().replace(/^Bearer\s+/i, '');
    if (!/^[\x21-\x7e]+$/.test(given)) {
      showProblems([{ field: 'token', message: 'Paste a token: it has no spaces.' }], problem);
      return;
    }
    setToken(given);
    hasToken = true;
    await showAll();
    if (work.hidden) return;
    token.value = '';
    signOut.hidden = false;
    find('#name', HTMLInputElement).focus();
  });
});

void showAll();

/** Loads the releases and clusters of the server. */
async function showAll() {
  problem.textContent = '';
  try {
    await showVersions();
    work.hidden = false;
    signIn.hidden = true;
    await showClusters();
  } catch (error) {
    if (askForToken(error)) return;
    if (!(error instanceof Refusal)) throw error;
    problem.textContent = error.message;
  }
}

/**
 * Asks for a token if the error means that it is missing, wrong or expired. The form keeps its values.
 *
 * @param {unknown} error
 * @returns {boolean} true if a token is needed
 */
function askForToken(error) {
  if (!(error instanceof Refusal) || error.status !== 401) return false;
  work.hidden = true;
  signOut.hidden = true;
  signIn.hidden = false;
  if (hasToken) showProblems([{ field: 'token', message: error.message }], problem);
  token.focus();
  return true;
}
