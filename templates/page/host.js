import { readNetworks } from './api.js';
import { busy, copyTemplate, find, say } from './dom.js';
import { buildNetwork, EMPTY_NETWORK, fieldOfPath } from './network-form.js';
import { nameInterfaces, needsNames, withHostName } from './ports.js';
import { clearField, showProblem } from './problems.js';
import { readNetwork } from './read-network.js';
import { formatYaml } from './yaml.js';

/**
 * One host: its interfaces, and its network as a form or as YAML.
 *
 * @typedef {import('./network-form.js').NetworkValues} NetworkValues
 * @typedef {import('./ports.js').Interface} Interface
 * @typedef {{ network_yaml: string, mac_interface_map: Interface[] }} Host
 */

/** Names of interfaces that the document has and no field shows, by host. @type {WeakMap<HTMLElement, NetworkValues>} */
const shown = new WeakMap();

/**
 * @param {HTMLFieldSetElement} host
 * @param {() => void} onChanged called when fields were added
 */
export function startHost(host, onChanged) {
  find('.add-interface', HTMLButtonElement, host).addEventListener('click', () => {
    const added = addInterface(host);
    onChanged();
    added.querySelector('input')?.focus();
  });
  const [form, yaml] = [tabOf(host, 'form'), tabOf(host, 'yaml')];
  yaml.addEventListener('click', () => {
    turnToYaml(host);
  });
  form.addEventListener('click', () => void busy(form, () => turnToForm(host)));
  for (const [tab, other] of /** @type {const} */ ([
    [form, yaml],
    [yaml, form],
  ])) {
    tab.addEventListener('keydown', ({ key }) => {
      if (key !== 'ArrowLeft' && key !== 'ArrowRight') return;
      other.focus();
      other.click();
    });
  }
  panelOf(host, 'form').addEventListener('input', ({ target }) => {
    forgetYaml(host);
    const isVlan = target instanceof HTMLElement && target.dataset['field'] === 'vlan';
    if (isVlan) shown.set(host, { ...namesOf(host), vlanName: '' });
    updateHost(host);
  });
  updateHost(host);
}

/**
 * Shows the values in the form.
 *
 * @param {HTMLFieldSetElement} host
 * @param {NetworkValues} values
 * @param {string} [yaml] that they were read from: it stays as it is until one of them changes
 */
export function showForm(host, values, yaml = '') {
  for (const field of listFields(host)) {
    field.value = values[/** @type {keyof NetworkValues} */ (field.dataset['field'])];
  }
  shown.set(host, values);
  yamlOf(host).value = yaml;
  find('.more', HTMLDetailsElement, host).open =
    values.address6 !== '' || values.mtu !== '' || values.search !== '';
  select(host, 'form');
}

/**
 * Shows YAML that the form cannot show.
 *
 * @param {HTMLFieldSetElement} host
 * @param {string} yaml
 * @param {string} obstacle
 */
export function showYaml(host, yaml, obstacle) {
  yamlOf(host).value = yaml;
  select(host, 'yaml');
  explain(host, obstacle);
}

/**
 * @param {HTMLFieldSetElement} host
 * @param {boolean} [isDraft] true to give a name to ports that the user has still to name
 * @returns {Host}
 */
export function readHost(host, isDraft = false) {
  const interfaces = listInterfaces(host).map((each) => ({
    mac_address: find('[data-field=mac]', HTMLInputElement, each).value.trim(),
    logical_nic_name: find('[data-field=interface]', HTMLInputElement, each).value.trim(),
  }));
  const map = isForm(host) ? nameInterfaces(interfaces, isDraft) : interfaces;
  const { value: yaml } = yamlOf(host);
  return {
    network_yaml: isForm(host) && yaml === '' ? build(host, map) : yaml,
    mac_interface_map: map,
  };
}

/**
 * The field that a problem with the network of a host belongs to: a field of the form, where that is shown.
 *
 * @param {HTMLFieldSetElement} host
 * @param {string | undefined} path
 */
export function fieldInHost(host, path) {
  if (!isForm(host) || path === undefined || path === '') {
    return isForm(host) ? 'address' : 'yaml';
  }
  return fieldOfPath(path, readForm(host));
}

/**
 * @param {HTMLFieldSetElement} host
 * @param {Partial<Interface>} [given]
 */
export function addInterface(host, { mac_address: mac = '', logical_nic_name: name = '' } = {}) {
  const added = copyTemplate('#interface-template', HTMLElement);
  find('[data-field=mac]', HTMLInputElement, added).value = mac;
  find('[data-field=interface]', HTMLInputElement, added).value = name;
  find('.interfaces', HTMLElement, host).append(added);
  added.addEventListener('input', ({ target }) => {
    if (!isForm(host)) return;
    if (target instanceof HTMLElement && target.dataset['field'] === 'interface') {
      forgetYaml(host);
      shown.set(host, { ...namesOf(host), vlanName: '' });
    }
    updateHost(host);
  });
  find('.remove-interface', HTMLButtonElement, added).addEventListener('click', () => {
    added.remove();
    if (isForm(host)) forgetYaml(host);
    updateHost(host);
    find('.add-interface', HTMLButtonElement, host).focus();
  });
  if (isForm(host)) forgetYaml(host);
  updateHost(host);
  return added;
}

/**
 * @param {HTMLElement} host
 * @returns {HTMLElement[]}
 */
export const listInterfaces = (host) =>
  [...host.querySelectorAll('.interface')].filter((each) => each instanceof HTMLElement);

/** @param {HTMLElement} host */
const isForm = (host) => !panelOf(host, 'form').hidden;

/**
 * @param {HTMLFieldSetElement} host
 * @param {readonly Interface[]} map
 */
const build = (host, map) =>
  withHostName(
    formatYaml(
      buildNetwork(
        readForm(host),
        map.map(({ logical_nic_name: name }) => name),
      ),
    ),
    host.dataset['name'] ?? '',
  );

/** @param {HTMLFieldSetElement} host */
function readForm(host) {
  const values = { ...namesOf(host) };
  for (const field of listFields(host)) {
    values[/** @type {keyof NetworkValues} */ (field.dataset['field'])] = field.value.trim();
  }
  return values;
}

/** @param {HTMLElement} host */
const namesOf = (host) => shown.get(host) ?? EMPTY_NETWORK;

/** The YAML is built again of what the form shows. @param {HTMLFieldSetElement} host */
function forgetYaml(host) {
  yamlOf(host).value = '';
}

/** @param {HTMLFieldSetElement} host */
function turnToYaml(host) {
  if (!isForm(host)) return;
  const { network_yaml: yaml, mac_interface_map: map } = readHost(host);
  for (const [i, each] of listInterfaces(host).entries()) {
    find('[data-field=interface]', HTMLInputElement, each).value = map[i]?.logical_nic_name ?? '';
  }
  yamlOf(host).value = yaml;
  select(host, 'yaml');
}

/** @param {HTMLFieldSetElement} host */
async function turnToForm(host) {
  if (isForm(host)) return;
  const field = yamlOf(host);
  clearField(field);
  const [read] = field.value.trim() === '' ? [] : await readNetworks([field.value]);
  if (read?.message !== undefined) {
    showProblem(field, { ...read, message: read.message });
    return;
  }
  const form = read ? readNetwork(read.value) : { values: EMPTY_NETWORK, ports: [] };
  if ('obstacle' in form) explain(host, form.obstacle);
  else if (arrange(host, form.ports)) showForm(host, form.values, field.value);
  else explain(host, 'names of interfaces that have no MAC address above');
}

/**
 * Puts interfaces into the order of the ports; false if they are not the same.
 *
 * @param {HTMLFieldSetElement} host
 * @param {readonly string[]} ports
 */
function arrange(host, ports) {
  if (ports.length === 0) return true;
  const byName = new Map(
    listInterfaces(host).map((each) => [
      find('[data-field=interface]', HTMLInputElement, each).value.trim(),
      each,
    ]),
  );
  const sorted = ports.map((port) => byName.get(port));
  if (byName.size !== ports.length || sorted.includes(undefined)) return false;
  find('.interfaces', HTMLElement, host).append(...sorted.filter((each) => each !== undefined));
  return true;
}

/**
 * @param {HTMLFieldSetElement} host
 * @param {string} obstacle
 */
function explain(host, obstacle) {
  const told = `The form cannot show this network, because of ${obstacle}. It stays as it is in YAML.`;
  say(find('.yaml-note', HTMLElement, host), told);
}

/**
 * @param {HTMLFieldSetElement} host
 * @param {'form' | 'yaml'} chosen
 */
function select(host, chosen) {
  for (const name of /** @type {const} */ (['form', 'yaml'])) {
    const tab = tabOf(host, name);
    tab.ariaSelected = String(name === chosen);
    tab.tabIndex = name === chosen ? 0 : -1;
    panelOf(host, name).hidden = name !== chosen;
  }
  say(find('.yaml-note', HTMLElement, host), '');
  updateHost(host);
}

/** Shows the fields that count. @param {HTMLFieldSetElement} host */
export function updateHost(host) {
  const isBonded = listInterfaces(host).length > 1;
  const isDhcp = readForm(host).method === 'dhcp';
  find('.bond-field', HTMLElement, host).hidden = !isBonded;
  for (const each of host.querySelectorAll('.fixed-field')) {
    if (each instanceof HTMLElement) each.hidden = isDhcp;
  }
  for (const each of listInterfaces(host)) {
    find('.name-field', HTMLElement, each).hidden = isForm(host) && !needsNames();
    find('.remove-interface', HTMLElement, each).hidden = !isBonded;
  }
}

/**
 * @param {HTMLElement} host
 * @param {'form' | 'yaml'} name
 */
const tabOf = (host, name) => find(`.${name}-tab`, HTMLButtonElement, host);

/**
 * @param {HTMLElement} host
 * @param {'form' | 'yaml'} name
 */
const panelOf = (host, name) => find(`.${name}-panel`, HTMLElement, host);

/** @param {HTMLElement} host */
const yamlOf = (host) => find('[data-field=yaml]', HTMLTextAreaElement, host);

/**
 * @param {HTMLElement} host
 * @returns {(HTMLInputElement | HTMLSelectElement)[]}
 */
const listFields = (host) =>
  [...panelOf(host, 'form').querySelectorAll('[data-field]')].filter(
    (each) => each instanceof HTMLInputElement || each instanceof HTMLSelectElement,
  );
