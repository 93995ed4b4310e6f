import { findField, valueOf } from './dom.js';
import { listUnnamedPorts, loadHosts, readHosts } from './hosts.js';

/**
 * The values of the form: read for a request, and filled in from an InfraEnv.
 *
 * @typedef {import('./problems.js').Problem} Problem
 * @typedef {import('./api.js').InfraEnv} InfraEnv
 * @typedef {Record<string, unknown>} Settings
 */

/** Members of an InfraEnv that are one text, each with its field. */
export const TEXTS = /** @type {const} */ ({
  pull_secret: 'pull-secret',
  ssh_authorized_key: 'ssh-key',
  additional_ntp_sources: 'ntp-sources',
  rendezvous_ip: 'rendezvous-ip',
  additional_trust_bundle: 'trust-bundle',
});

/** @returns {{ name: string, openshift_version: string }} */
export const readCluster = () => ({
  name: valueOf('name'),
  openshift_version: valueOf('openshift-version'),
});

/**
 * All settings of the form; an empty text clears its member.
 *
 * @returns {Settings}
 */
export const readSettings = (isDraft = false) => ({
  ...Object.fromEntries(Object.entries(TEXTS).map(([name, field]) => [name, valueOf(field)])),
  proxy: {
    http_proxy: valueOf('http-proxy'),
    https_proxy: valueOf('https-proxy'),
    no_proxy: valueOf('no-proxy').replaceAll(/\s*,\s*/g, ','),
  },
  kernel_arguments: listArguments().map(({ value }) => ({ operation: 'append', value })),
  static_network_config: readHosts(isDraft),
});

/** Arguments with their lines, from 1. */
export const listArguments = () =>
  (findField('kernel-arguments')?.value ?? '')
    .split('\n')
    .map((line, i) => ({ value: line.trim(), line: i + 1 }))
    .filter(({ value }) => value !== '');

/**
 * The settings that a new InfraEnv gets: those that are not empty.
 *
 * @param {Settings} settings
 * @returns {Settings}
 */
export const withoutEmpty = (settings) =>
  Object.fromEntries(
    Object.entries(settings)
      .map(
        ([name, value]) =>
          /** @type {const} */ ([name, isMap(value) ? withoutEmpty(value) : value]),
      )
      .filter(
        ([, value]) =>
          !['', '[]', '{}'].includes(typeof value === 'string' ? value : JSON.stringify(value)),
      ),
  );

/**
 * @param {unknown} value
 * @returns {value is Settings}
 */
const isMap = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * The settings that differ from those before: a change names no others.
 *
 * @param {Settings} settings
 * @param {Settings} before
 * @returns {Settings}
 */
export const listChanged = (settings, before) =>
  Object.fromEntries(
    Object.entries(settings).filter(
      ([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name]),
    ),
  );

/**
 * Fills the form from an InfraEnv. Its pull secret is not known here.
 *
 * @param {InfraEnv} infraEnv
 */
export async function fillSettings(infraEnv) {
  /** @type {Record<string, string | undefined>} */
  const texts = {
    ...Object.fromEntries(
      Object.entries(TEXTS).map(([name, field]) => [
        field,
        /** @type {Record<string, string | undefined>} */ (/** @type {unknown} */ (infraEnv))[name],
      ]),
    ),
    'pull-secret': '',
    'rendezvous-ip': fillRendezvous(infraEnv),
    'http-proxy': infraEnv.proxy?.http_proxy,
    'https-proxy': infraEnv.proxy?.https_proxy,
    'no-proxy': infraEnv.proxy?.no_proxy,
    'kernel-arguments': readList(infraEnv.kernel_arguments)
      .map(({ value = '' }) => value)
      .join('\n'),
  };
  for (const [id, text = ''] of Object.entries(texts)) {
    const field = findField(id);
    if (field) field.value = text;
  }
  const hosts = /** @type {import('./host.js').Host[]} */ (
    /** @type {unknown} */ (readList(infraEnv.static_network_config))
  );
  await loadHosts(hosts);
}

/**
 * The address that was given; one that was chosen from the hosts is shown in its place.
 *
 * @param {InfraEnv} infraEnv
 */
function fillRendezvous({ rendezvous_ip: address = '', rendezvous_ip_chosen: isChosen = false }) {
  findField('rendezvous-ip')?.setAttribute('placeholder', isChosen ? `chosen: ${address}` : '');
  return isChosen ? '' : address;
}

/**
 * @param {string | undefined} json
 * @returns {Record<string, string>[]}
 */
const readList = (json = '') =>
  json === '' ? [] : /** @type {Record<string, string>[]} */ (JSON.parse(json));

/**
 * Checks what needs no server: that required fields are filled in.
 *
 * @param {boolean} isNew
 * @returns {Problem[]}
 */
export const checkRequired = (isNew) => [
  ...(isNew
    ? [
        ...require('name', 'Enter a name for the cluster.'),
        ...require('openshift-version', 'Choose a version.'),
        ...require('pull-secret', 'Paste the pull secret, or choose its file.'),
      ]
    : []),
  ...listUnnamedPorts().map((field) => ({
    field,
    message: 'Enter the name that the port has on the host, such as eno1.',
  })),
];

/**
 * @param {string} field
 * @param {string} message
 * @returns {Problem[]}
 */
const require = (field, message) => (valueOf(field) === '' ? [{ field, message }] : []);
