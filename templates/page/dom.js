/**
 * An element that the page has.
 *
 * @template {Element} Kind
 * @param {string} selector
 * @param {new () => Kind} kind
 * @param {ParentNode} [within]
 * @returns {Kind}
 */
export function find(selector, kind, within = document) {
  const found = within.querySelector(selector);
  if (found instanceof kind) return found;
  throw new TypeError(`the page has no ${kind.name} ${selector}`);
}

/**
 * The element in a template.
 *
 * @template {Element} Kind
 * @param {string} selector
 * @param {new () => Kind} kind
 * @returns {Kind}
 */
export function copyTemplate(selector, kind) {
  const copy = find(selector, HTMLTemplateElement).content.firstElementChild?.cloneNode(true);
  if (copy instanceof kind) return copy;
  throw new TypeError(`${selector} has no ${kind.name}`);
}

/**
 * What is said in a live region is said again when it is the same.
 *
 * @param {Element} region
 * @param {string} text
 */
export function say(region, text) {
  region.replaceChildren(text);
}

/** @typedef {HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement} Field */

/**
 * @param {string} id
 * @returns {Field | undefined}
 */
export function findField(id) {
  const found = document.getElementById(id);
  const isField =
    found instanceof HTMLInputElement ||
    found instanceof HTMLSelectElement ||
    found instanceof HTMLTextAreaElement;
  return isField ? found : undefined;
}

/**
 * Without white space around it; empty where there is no such field.
 *
 * @param {string} id
 */
export const valueOf = (id) => findField(id)?.value.trim() ?? '';

/**
 * One at a time: who presses a button twice gets the first one's work.
 *
 * @param {HTMLElement} button
 * @param {() => Promise<void>} work
 */
export async function busy(button, work) {
  if (button.ariaDisabled === 'true') return;
  button.ariaDisabled = 'true';
  try {
    await work();
  } finally {
    button.ariaDisabled = null;
  }
}
