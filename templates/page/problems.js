import { findField } from './dom.js';

/**
 * A problem with a field, or with the whole form if there is no field. In a text of several lines it has a
 * place.
 *
 * @typedef {{ field?: string, line?: number, column?: number, message: string }} Problem
 */

/**
 * Marks the fields, shows each problem next to its field, and focuses the first one.
 *
 * @param {readonly Problem[]} problems
 * @param {HTMLElement} region an alert
 */
export function showProblems(problems, region) {
  const others = problems.filter((problem) => !markField(problem)).map(toText);
  const marked = document.querySelectorAll('[aria-invalid="true"]');
  if (others.length < problems.length) {
    const { length } = marked;
    others.unshift(
      length === 1 ? 'One field needs attention.' : `${length} fields need attention.`,
    );
  }
  region.textContent = others.join(' ');
  if (others.length < problems.length && marked[0] instanceof HTMLElement) marked[0].focus();
}

/**
 * Shows a problem next to its field, and the cursor at its place.
 *
 * @param {import('./dom.js').Field} field
 * @param {Omit<Problem, 'field'>} problem
 */
export function showProblem(field, problem) {
  markField({ ...problem, field: field.id });
  field.focus();
  if (field instanceof HTMLTextAreaElement && problem.line !== undefined) {
    const before = field.value
      .split('\n')
      .slice(0, problem.line - 1)
      .join('\n');
    const at = before.length + Number(problem.line > 1) + (problem.column ?? 1) - 1;
    field.setSelectionRange(at, at);
  }
}

/** @param {Problem} problem */
const toText = ({ line, column, message }) => {
  const place = line === undefined ? '' : `Line ${line}, column ${column ?? 1}: `;
  const text = place === '' ? message.charAt(0).toUpperCase() + message.slice(1) : message;
  return `${place}${text}${/[.!?)]$/.test(text) ? '' : '.'}`;
};

/**
 * A field with several problems shows all of them.
 *
 * @param {Problem} problem
 * @returns {boolean} whether the page has the field
 */
function markField(problem) {
  const field = problem.field === undefined ? undefined : findField(problem.field);
  if (!field) return false;
  for (const details of [
    field.closest('details'),
    field.closest('details')?.parentElement?.closest('details'),
  ]) {
    if (details) details.open = true;
  }
  const message = toText(problem);
  const shown = document.getElementById(`${field.id}-error`);
  if (shown) {
    shown.textContent += `\n${message}`;
    return true;
  }
  const text = document.createElement('p');
  text.className = 'error';
  text.id = `${field.id}-error`;
  text.textContent = message;
  field.before(text);
  field.setAttribute('aria-invalid', 'true');
  const hint = field.getAttribute('aria-describedby');
  field.setAttribute('aria-describedby', [text.id, ...(hint === null ? [] : [hint])].join(' '));
  return true;
}

/**
 * @param {HTMLElement} form
 * @param {HTMLElement} region
 */
export function clearProblems(form, region) {
  for (const field of form.querySelectorAll('[aria-invalid]')) clearField(field);
  region.textContent = '';
}

/** @param {Element} field */
export function clearField(field) {
  if (!field.hasAttribute('aria-invalid')) return;
  const error = `${field.id}-error`;
  document.getElementById(error)?.remove();
  field.removeAttribute('aria-invalid');
  const hints = (field.getAttribute('aria-describedby') ?? '').split(' ');
  const left = hints.filter((hint) => hint !== error && hint !== '');
  if (left.length === 0) field.removeAttribute('aria-describedby');
  else field.setAttribute('aria-describedby', left.join(' '));
}
