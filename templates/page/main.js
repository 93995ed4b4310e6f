import { Refusal, setToken } from './api.js';
import { showClusters, startList } from './cluster-list.js';
import { resetForm, showVersions, startForm } from './create-form.js';
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
startList({ onSignedOut });

// What is not foreseen is said, too.
window.addEventListener('unhandledrejection', ({ reason }) => {
  problem.textContent = `This page has a fault: ${String(reason)}. Reload it.`;
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

/** What the server has. */
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
 * A token is missing, wrong or has expired. What was typed stays for when there is another one.
 *
 * @param {unknown} error
 * @returns {boolean} whether it is of that kind
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
