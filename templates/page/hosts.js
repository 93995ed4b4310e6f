import { copyTemplate, find } from './dom.js';

/**
 * @typedef {{ mac_address: string, logical_nic_name: string }} Interface
 * @typedef {{ network_yaml: string, mac_interface_map: Interface[] }} Host
 */

/** Adds a host whenever the button is pressed. */
export function startHosts() {
  find('#add-host', HTMLButtonElement).addEventListener('click', () => {
    const host = copyTemplate('#host-template', HTMLFieldSetElement);
    addInterface(host);
    find('.add-interface', HTMLButtonElement, host).addEventListener('click', () => {
      addInterface(host);
      numberFields();
      host.querySelector('.interface:last-child input')?.scrollIntoView({ block: 'nearest' });
      focusOn(host, '.interface:last-child input');
    });
    find('.remove-host', HTMLButtonElement, host).addEventListener('click', () => {
      host.remove();
      numberFields();
      find('#add-host', HTMLButtonElement).focus();
    });
    find('#hosts', HTMLElement).append(host);
    numberFields();
    focusOn(host, 'textarea');
  });
}

export function removeHosts() {
  find('#hosts', HTMLElement).replaceChildren();
}

/** @returns {Host[]} */
export const readHosts = () =>
  listHosts().map((host) => ({
    network_yaml: find('textarea', HTMLTextAreaElement, host).value,
    mac_interface_map: listInterfaces(host).map((each) => ({
      mac_address: find('[data-field=mac]', HTMLInputElement, each).value.trim(),
      logical_nic_name: find('[data-field=interface]', HTMLInputElement, each).value.trim(),
    })),
  }));

/** @param {HTMLElement} host */
function addInterface(host) {
  find('.interfaces', HTMLElement, host).append(copyTemplate('#interface-template', HTMLElement));
}

/** Numbers hosts and interfaces from 1, again after one of them was removed. */
function numberFields() {
  for (const [i, host] of listHosts().entries()) {
    const id = `host-${i + 1}`;
    find('legend', HTMLLegendElement, host).textContent = `Host ${i + 1}`;
    numberField(host, 'yaml', id);
    for (const [j, each] of listInterfaces(host).entries()) {
      numberField(each, 'mac', `${id}-${j + 1}`);
      numberField(each, 'interface', `${id}-${j + 1}`);
    }
  }
}

/**
 * @param {HTMLElement} within
 * @param {string} name
 * @param {string} prefix
 */
function numberField(within, name, prefix) {
  const id = `${prefix}-${name}`;
  find(`[data-field=${name}]`, HTMLElement, within).id = id;
  find(`[data-for=${name}]`, HTMLLabelElement, within).htmlFor = id;
}

/** @returns {HTMLElement[]} */
const listHosts = () => [...document.querySelectorAll('#hosts > .host')].filter(isElement);

/**
 * @param {HTMLElement} host
 * @returns {HTMLElement[]}
 */
const listInterfaces = (host) => [...host.querySelectorAll('.interface')].filter(isElement);

/**
 * @param {Element} element
 * @returns {element is HTMLElement}
 */
const isElement = (element) => element instanceof HTMLElement;

/**
 * @param {HTMLElement} host
 * @param {string} selector
 */
const focusOn = (host, selector) => {
  find(selector, HTMLElement, host).focus();
};
