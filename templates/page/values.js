import { valueOf } from './dom.js';
import { readHosts } from './hosts.js';

/** @typedef {import('./problems.js').Problem} Problem */

/**
 * The bodies of the two calls that make a cluster with its InfraEnv.
 *
 * @returns {{ cluster: { name: string, openshift_version: string }, infraEnv: Record<string, unknown> }}
 */
export function readValues() {
  const name = valueOf('name');
  const hosts = readHosts().map((host) => ({
    network_yaml: host.network_yaml,
    mac_interface_map: host.mac_interface_map.filter((each) => !isEmpty(each)),
  }));
  const kernelArguments = valueOf('kernel-arguments')
    .split('\n')
    .map((line) => ({ operation: 'append', value: line.trim() }))
    .filter(({ value }) => value !== '');
  const proxy = withoutEmpty({
    http_proxy: valueOf('http-proxy'),
    https_proxy: valueOf('https-proxy'),
    no_proxy: valueOf('no-proxy').replaceAll(/\s*,\s*/g, ','),
  });
  return {
    cluster: { name, openshift_version: valueOf('openshift-version') },
    infraEnv: {
      name,
      image_type: 'disconnected-iso',
      pull_secret: valueOf('pull-secret'),
      ...withoutEmpty({
        cpu_architecture: valueOf('cpu-architecture'),
        ssh_authorized_key: valueOf('ssh-key'),
        additional_ntp_sources: valueOf('ntp-sources'),
        rendezvous_ip: valueOf('rendezvous-ip'),
      }),
      ...(Object.keys(proxy).length > 0 && { proxy }),
      ...(kernelArguments.length > 0 && { kernel_arguments: kernelArguments }),
      ...(hosts.length > 0 && { static_network_config: hosts }),
    },
  };
}

/** @param {Record<string, string>} values */
const withoutEmpty = (values) =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== ''));

/**
 * Checks what needs no server; the server checks the rest.
 *
 * @returns {Problem[]}
 */
export const checkValues = () =>
  [
    requireValue('name', 'Enter a name for the cluster.'),
    requireValue('openshift-version', 'Choose a version.'),
    requireValue('pull-secret', 'Paste the pull secret, or choose its file.') ?? checkSecret(),
    ...readHosts().flatMap(checkHost),
  ].filter((problem) => problem !== undefined);

/**
 * @param {string} field
 * @param {string} message
 * @returns {Problem | undefined}
 */
const requireValue = (field, message) => (valueOf(field) === '' ? { field, message } : undefined);

/** @returns {Problem | undefined} */
function checkSecret() {
  try {
    JSON.parse(valueOf('pull-secret'));
    return undefined;
  } catch {
    return {
      field: 'pull-secret',
      message: 'This is not JSON. A pull secret begins with {"auths": and ends with a brace.',
    };
  }
}

/**
 * @param {import('./hosts.js').Host} host
 * @param {number} i
 */
const checkHost = ({ mac_interface_map: map }, i) => [
  requireValue(`host-${i + 1}-yaml`, 'Enter the network of this host, or remove the host.'),
  ...map.flatMap((each, j) => {
    if (j > 0 && isEmpty(each)) return [];
    const id = `host-${i + 1}-${j + 1}`;
    return [
      requireValue(`${id}-mac`, 'Enter the MAC address.') ?? checkMac(`${id}-mac`),
      requireValue(`${id}-interface`, 'Enter the interface name that the YAML uses.'),
    ];
  }),
];

/**
 * True if neither field was filled in; such an interface is left out.
 *
 * @param {import('./hosts.js').Interface} each
 */
const isEmpty = ({ mac_address: mac, logical_nic_name: name }) => mac === '' && name === '';

/**
 * @param {string} field
 * @returns {Problem | undefined}
 */
const checkMac = (field) =>
  /^(?:[0-9A-F]{2}([:-]?)(?:[0-9A-F]{2}\1){4}[0-9A-F]{2}|[0-9A-F]{4}(?:\.[0-9A-F]{4}){2})$/i.test(
    valueOf(field),
  )
    ? undefined
    : { field, message: 'Enter a MAC address such as 52:54:00:12:34:56.' };

/** Patterns in the server's reasons, each with the field that it is about. */
const FIELDS = /** @type {const} */ ([
  [/^pull[ _]secret/i, 'pull-secret'],
  [/^(?:SSH key|ssh_authorized_key)/i, 'ssh-key'],
  [/rendezvous[ _]?ip/i, 'rendezvous-ip'],
  [/\bNTP\b|ntp_sources/i, 'ntp-sources'],
  [/kernel[ _]argument/i, 'kernel-arguments'],
  [/^HTTP proxy/, 'http-proxy'],
  [/^HTTPS proxy/, 'https-proxy'],
  [/^No proxy/, 'no-proxy'],
  [/^(?:cluster )?name/i, 'name'],
  [/installer release|openshift[ _]version/i, 'openshift-version'],
]);

/** Names in the API, each with the name in the form. */
const WORDS = /** @type {const} */ ([
  [/^Pull secret for new infraEnv is invalid: p/, 'P'],
  [/^Failed to validate (HTTPS?) Proxy/, '$1 proxy'],
  [/^NO Proxy is a comma-separated list .*? later\./, 'No proxy'],
  [/^Rendezvous_ip in body should match .*/, 'The rendezvous IP is not an IPv4 or IPv6 address.'],
  [/^\d+ errors? occurred:\n\t\* (?:failed to validate network yaml for host \d+, )?/, ''],
  [/^mac-interface mapping for interface \S+ is missing and not a physical interface: /, ''],
  [/^static_network/, 'Static_network'],
  [/(?<=.)\n\t\* .*/s, '.'],
  [/\s+\.?$/, '.'],
  [/ in body (?=must|is|should)/, ' '],
]);

/**
 * @param {string} reason of a refusal
 * @returns {Problem}
 */
export function locateProblem(reason) {
  let message = reason;
  for (const [name, word] of WORDS) message = message.replace(name, word);
  const [, host] = OF_HOST.exec(message) ?? [];
  if (host !== undefined) {
    const told = message
      .replace(`host ${host}`, 'this host')
      .replace(/^Static_network_config\[\d+\]\.network_yaml/, 'The network of this host');
    return { field: `host-${Number(host) + 1}-yaml`, message: told };
  }
  const field = FIELDS.find(([pattern]) => pattern.test(message))?.[1];
  return field === undefined ? { message } : { field, message };
}

/** The number of a host in a reason, from 0 in the order of the form; an image has another order. */
const OF_HOST = /^(?!Failed)(?:.*\bhost |Static_network_config[.[])(\d+)\b/;
