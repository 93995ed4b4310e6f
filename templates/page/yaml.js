/**
 * @typedef {string | number | boolean | PlainList | PlainMap} Plain
 * @typedef {{ readonly [name: string]: Plain }} PlainMap
 * @typedef {readonly (string | number | PlainMap)[]} PlainList
 */

/** Texts that every reader of YAML takes as texts without quotes: names such as eth0, and IPv4 addresses. */
const PLAIN =
  /^(?:[a-z][a-z_-]*\d[\w.-]*|ethernet|bond|vlan|up|active-backup|\d+(?:\.\d+){3}(?:\/\d+)?)$/i;

/**
 * YAML in block style; other texts are in double quotes, as in JSON.
 *
 * @param {Plain} value
 * @param {string} [indent]
 * @returns {string}
 */
export function formatYaml(value, indent = '') {
  if (Array.isArray(value)) {
    return value
      .map(
        (/** @type {Plain} */ item) => `${indent}- ${formatYaml(item, `${indent}  `).trimStart()}`,
      )
      .join('');
  }
  if (typeof value === 'object') {
    return Object.entries(value)
      .map(([name, member]) => `${indent}${name}:${formatMember(member, indent)}`)
      .join('');
  }
  return `${typeof value !== 'string' || PLAIN.test(value) ? String(value) : JSON.stringify(value)}\n`;
}

/**
 * @param {Plain} value
 * @param {string} indent
 */
const formatMember = (value, indent) =>
  typeof value === 'object' ? `\n${formatYaml(value, `${indent}  `)}` : ` ${formatYaml(value)}`;
