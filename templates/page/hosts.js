import { readNetworks } from './api.js';
import { copyTemplate, find } from './dom.js';
import {
  addInterface,
  listInterfaces,
  readHost,
  showForm,
  showYaml,
  startHost,
  updateHost,
} from './host.js';
import { needsNames, readHostName } from './ports.js';
import { readNetwork } from './read-network.js';

/**
 * The list of hosts in the form.
 *
 * @typedef {import('./host.js').Host} Host
 * @typedef {import('./network-form.js').NetworkValues} NetworkValues
 * @typedef {{
 *   name?: string, interfaces: readonly import('./ports.js').Interface[], values: NetworkValues,
 * }} HostValues
 */

/** Adds a host whenever the button is pressed. */
export function startHosts() {
  find('#add-host', HTMLButtonElement).addEventListener('click', () => {
    const host = addHost();
    addInterface(host);
    numberFields();
    find('.interface input', HTMLInputElement, host).focus();
  });
}

export function removeHosts() {
  find('#hosts', HTMLElement).replaceChildren();
}

/** Shows the fields that hosts need on another medium. */
export function updateHosts() {
  for (const host of listHosts()) updateHost(host);
}

/**
 * @param {boolean} isDraft true to give a name to ports that the user has still to name
 * @returns {Host[]}
 */
export const readHosts = (isDraft) => listHosts().map((host) => readHost(host, isDraft));

/** Fields of ports that the user must name and did not. */
export const listUnnamedPorts = () =>
  (needsNames() ? listHosts().flatMap(listInterfaces) : [])
    .map((each) => find('[data-field=interface]', HTMLInputElement, each))
    .filter(({ value }) => value.trim() === '')
    .map(({ id }) => id);

/** @param {number} index from 0 */
export const hostAt = (index) => listHosts()[index];

/**
 * Adds hosts that were read from a table.
 *
 * @param {readonly HostValues[]} given
 */
export function addHosts(given) {
  for (const { name, interfaces, values } of given) {
    const host = addHost(name);
    for (const each of interfaces) addInterface(host, each);
    showForm(host, values);
  }
  numberFields();
}

/**
 * Shows the hosts of an InfraEnv: in the form if it can show all of their YAML.
 *
 * @param {readonly Host[]} given
 */
export async function loadHosts(given) {
  if (given.length === 0) return;
  const read = await readNetworks(given.map(({ network_yaml: yaml }) => yaml));
  for (const [i, { network_yaml: yaml, mac_interface_map: map }] of given.entries()) {
    const host = addHost(readHostName(yaml));
    const form = readNetwork(read[i]?.value);
    const names = 'ports' in form ? form.ports : [];
    /** @param {string} name */
    const placeOf = (name) => (names.includes(name) ? names.indexOf(name) : names.length);
    const sorted = map.toSorted(
      (a, b) => placeOf(a.logical_nic_name) - placeOf(b.logical_nic_name),
    );
    for (const each of sorted) addInterface(host, each);
    const isWhole =
      names.length === map.length && map.every((each) => names.includes(each.logical_nic_name));
    if ('values' in form && isWhole) showForm(host, form.values, yaml);
    else showYaml(host, yaml, 'obstacle' in form ? form.obstacle : 'mac_interface_map');
  }
  numberFields();
}

/** @param {string} [name] */
function addHost(name = '') {
  const host = copyTemplate('#host-template', HTMLFieldSetElement);
  host.dataset['name'] = name;
  startHost(host, numberFields);
  find('.remove-host', HTMLButtonElement, host).addEventListener('click', () => {
    host.remove();
    numberFields();
    find('#add-host', HTMLButtonElement).focus();
  });
  find('#hosts', HTMLElement).append(host);
  return host;
}

/** Numbers hosts and interfaces from 1, again after one of them was removed. */
function numberFields() {
  for (const [i, host] of listHosts().entries()) {
    const id = `host-${i + 1}`;
    const { name = '' } = host.dataset;
    const title = `Host ${i + 1}${name === '' ? '' : `: ${name}`}`;
    find('legend', HTMLLegendElement, host).textContent = title;
    find('.remove-host', HTMLButtonElement, host).ariaLabel = `Remove this host: ${i + 1}`;
    nameFields(host, id, '.interface');
    for (const [j, each] of listInterfaces(host).entries()) nameFields(each, `${id}-${j + 1}`);
  }
}

/**
 * Gives fields their ids, and what belongs to a field to it.
 *
 * @param {HTMLElement} within
 * @param {string} prefix
 * @param {string} [except] fields inside have ids of their own
 */
function nameFields(within, prefix, except) {
  for (const each of within.querySelectorAll(
    '[data-field], [data-for], [data-hint], [data-panel]',
  )) {
    if (!(each instanceof HTMLElement)) continue;
    if (except !== undefined && each.closest(except)) continue;
    const { field, for: label, hint, panel } = each.dataset;
    if (field !== undefined) each.id = `${prefix}-${field}`;
    if (hint !== undefined) each.id = `${prefix}-${hint}-hint`;
    if (panel !== undefined) each.id = `${prefix}-${panel}-panel`;
    if (each instanceof HTMLLabelElement) each.htmlFor = `${prefix}-${label ?? ''}`;
  }
}

/** @returns {HTMLFieldSetElement[]} */
const listHosts = () => [...find('#hosts', HTMLElement).querySelectorAll('fieldset')];
