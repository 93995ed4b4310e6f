/**
 * The names of ports. The installer on an ISO finds ports by their MAC addresses, so that names can be made up; a live
 * ISO without it takes the names that the host itself has.
 *
 * @typedef {{ mac_address: string, logical_nic_name: string }} Interface
 */

let isByMac = true;

/** @param {boolean} hasAgents true for an ISO with the installer */
export const setMedium = (hasAgents) => {
  isByMac = hasAgents;
};

/** True if the user must name each port. */
export const needsNames = () => !isByMac;

/**
 * Leaves out empty ports but the first, and gives a name to those without one, if any name will do.
 *
 * @param {readonly Interface[]} interfaces
 * @param {boolean} isDraft true to judge the other values: any name will do
 * @returns {Interface[]}
 */
export function nameInterfaces(interfaces, isDraft) {
  const filled = interfaces.filter(
    ({ mac_address: mac, logical_nic_name: name }, i) =>
      i === 0 || mac !== '' || (needsNames() && name !== ''),
  );
  if (needsNames() && !isDraft) return filled;
  const used = new Set(filled.map(({ logical_nic_name: name }) => name));
  let next = 1;
  return filled.map(({ mac_address: mac, logical_nic_name: given }) => {
    while (given === '' && used.has(`nic${next}`)) next++;
    const name = given === '' ? `nic${next++}` : given;
    return { mac_address: mac, logical_nic_name: name };
  });
}

const NAME = /^# host: (.*)\n$/m;

/**
 * The YAML of a host with its name in a comment: hosts of the interface have no name. It is the last line, because the
 * server sorts hosts by their YAML.
 *
 * @param {string} yaml
 * @param {string} name
 */
export const withHostName = (yaml, name) =>
  name === '' || NAME.test(yaml) ? yaml : `${yaml}# host: ${name.replaceAll(/\s+/g, ' ')}\n`;

/** @param {string} yaml */
export const readHostName = (yaml) => NAME.exec(yaml)?.[1] ?? '';
