import { find, findField, say } from './dom.js';
import { clearField } from './problems.js';

/** Files whose text fills a field. */

/** A pull secret with many registries has some 20 KiB. */
const FILE_LIMIT = 256 * 1024;

/** @param {ParentNode} within */
export function startFiles(within) {
  for (const input of within.querySelectorAll('input[type=file]')) {
    if (input instanceof HTMLInputElement) fillFromFile(input);
  }
}

/** @param {HTMLInputElement} input */
function fillFromFile(input) {
  const field = findField(input.dataset['fills'] ?? '');
  if (!field) throw new TypeError(`${input.id} fills no field`);
  const note = find('.filled', HTMLElement, input.parentElement ?? undefined);
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
