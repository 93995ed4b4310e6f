import { findField } from './dom.js';

/**
 * A problem with a field, or with the whole form if there is no field.
 *
 * @typedef {{ field?: string, message: string }} Problem
 */

/**
 * Marks the fields, shows each problem next to its field, and focuses the first one.
 *
 * @param {readonly Problem[]} problems
 * @param {HTMLElement} region an alert
 */
export function showProblems(problems, region) {
  const others = problems.filter((problem) => !markField(problem)).map(({ message }) => message);
  const marked = problems.length - others.length;
  if (marked > 0) {
    others.unshift(
      marked === 1 ? 'One field needs attention.' : `${marked} fields need attention.`,
    );
  }
  region.textContent = others.join(' ');
  const [first] = document.querySelectorAll('[aria-invalid="true"]');
  if (first instanceof HTMLElement && marked > 0) first.focus();
}

/**
 * @param {Problem} problem
 * @returns {boolean} whether the page has the field
 */
function markField({ field: id, message }) {
  const field = id === undefined ? undefined : findField(id);
  if (!field) return false;
  const details = field.closest('details');
  if (details) details.open = true;
  clearField(field);
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
