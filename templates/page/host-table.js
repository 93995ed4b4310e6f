import { checkForm, readHostTable, Refusal } from './api.js';
import { busy, find, say } from './dom.js';
import { addHosts } from './hosts.js';
import {
  buildNetwork,
  EMPTY_NETWORK,
  fieldOfPath,
  splitWords,
  withoutPath,
} from './network-form.js';
import { formatYaml } from './yaml.js';

/**
 * The dialog in which a table of hosts is pasted from a sheet. Either all rows become hosts of the form, or
 * each problem is shown with its row and column.
 *
 * @typedef {import('./hosts.js').HostValues & { row: number }} RowHost
 * @typedef {{ row: number, column?: string, message: string }} RowProblem
 */

const dialog = find('#table-dialog', HTMLDialogElement);
const field = find('#host-table', HTMLTextAreaElement);
const alert = find('#table-alert', HTMLElement);
const problems = find('#table-problems', HTMLUListElement);

/** @param {(error: unknown) => boolean} onSignedOut */
export function startHostTable(onSignedOut) {
  find('#paste-hosts', HTMLButtonElement).addEventListener('click', () => {
    show([]);
    dialog.showModal();
  });
  find('#table-cancel', HTMLButtonElement).addEventListener('click', () => {
    dialog.close();
  });
  const take = find('#table-take', HTMLButtonElement);
  take.addEventListener('click', () => {
    void busy(take, async () => {
      try {
        await takeTable();
      } catch (error) {
        if (onSignedOut(error)) dialog.close();
        else if (error instanceof Refusal) show([{ row: 0, message: error.message }]);
        else throw error;
      }
    });
  });
}

async function takeTable() {
  const read = await readHostTable(field.value);
  const hosts = read.hosts.map(({ row, values }) => toHost(row, values));
  const wrong = read.problems.length > 0 ? read.problems : await judge(hosts, read.columns);
  show(wrong);
  if (wrong.length > 0) return;
  addHosts(hosts);
  field.value = '';
  dialog.close();
  say(
    find('#hosts-note', HTMLElement),
    `Filled in from the table: ${hosts.length === 1 ? 'one host' : `${hosts.length} hosts`}.`,
  );
  find('#paste-hosts', HTMLButtonElement).focus();
}

/** @param {readonly RowProblem[]} found */
function show(found) {
  problems.replaceChildren(
    ...found.map(({ row, column, message }) => {
      const item = document.createElement('li');
      const place = [row > 0 ? `Row ${row}` : '', column ?? ''].filter((part) => part !== '');
      item.textContent = [place.join(', '), message].filter((part) => part !== '').join(': ');
      return item;
    }),
  );
  alert.hidden = found.length === 0;
  if (found.length > 0) alert.focus();
}

/**
 * @param {number} row
 * @param {Readonly<Record<string, string>>} cells
 * @returns {RowHost}
 */
function toHost(row, cells) {
  const { name = '', mac = '', mac2 = '', port = '', port2 = '', ...others } = cells;
  const { address = '' } = others;
  const isDhcp = address === '' || address.toLowerCase() === 'dhcp';
  const values = { ...EMPTY_NETWORK, ...others, ...(isDhcp && { method: 'dhcp', address: '' }) };
  if (values.bond === '') values.bond = EMPTY_NETWORK.bond;
  const ports = splitWords(`${port} ${port2}`);
  const interfaces = splitWords(`${mac} ${mac2}`).map((mac_address, i) => ({
    mac_address,
    logical_nic_name: ports[i] ?? '',
  }));
  return { row, name, interfaces, values };
}

/**
 * Lets the server judge the networks that the form makes of the rows.
 *
 * @param {readonly RowHost[]} hosts
 * @param {Readonly<Record<string, string>>} columns
 * @returns {Promise<RowProblem[]>}
 */
async function judge(hosts, columns) {
  const networks = hosts.map(({ interfaces, values }) => {
    // Ports that lack a name are marked in the form, if a name counts.
    const map = interfaces.map((each, i) => ({
      ...each,
      logical_nic_name: each.logical_nic_name || `nic${i + 1}`,
    }));
    const names = map.map(({ logical_nic_name: name }) => name);
    return { network_yaml: formatYaml(buildNetwork(values, names)), mac_interface_map: map };
  });
  const verdict = await checkForm({ infra_env: { static_network_config: networks } });
  return verdict.problems.map(({ field: place, path, message }) => {
    const host = hosts[Number(/\[(\d+)\]/.exec(place)?.[1] ?? -1)];
    if (!host) return { row: 0, message };
    const member = place.includes('mac_') ? macColumn(place) : fieldOfPath(path ?? '', host.values);
    const column = columns[member] ?? member;
    return { row: host.row, column, message: withoutPath(message) };
  });
}

/** @param {string} place */
const macColumn = (place) =>
  (place.endsWith('logical_nic_name') ? 'port' : 'mac') + (place.includes('map[1]') ? '2' : '');
