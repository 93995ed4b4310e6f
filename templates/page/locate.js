import { fieldInHost } from './host.js';
import { hostAt } from './hosts.js';
import { withoutPath } from './network-form.js';
import { listArguments, TEXTS } from './values.js';

/**
 * The fields of the form that problems of a request belong to.
 *
 * @typedef {import('./problems.js').Problem} Problem
 * @typedef {import('./api.js').FieldProblem} FieldProblem
 */

/** Members of requests, each with its field. @type {Readonly<Record<string, string>>} */
const FIELDS = {
  ...TEXTS,
  'name': 'name',
  'openshift_version': 'openshift-version',
  'proxy.http_proxy': 'http-proxy',
  'proxy.https_proxy': 'https-proxy',
  'proxy.no_proxy': 'no-proxy',
};

/**
 * The problem at its field of the form.
 *
 * @param {FieldProblem} problem
 * @returns {Problem}
 */
export function locateProblem(problem) {
  const { field: member, message } = problem;
  const [, list = member, at, below = ''] = /^(\w+)\[(\d+)\]\.?(.*)$/.exec(member) ?? [];
  if (list === 'static_network_config' && at !== undefined) {
    return locateInHost(problem, Number(at), below);
  }
  if (list === 'kernel_arguments') return locateArgument(message, at);
  const field = FIELDS[member];
  return { ...(field !== undefined && { field }), ...placeOf(problem), message };
}

/** @param {FieldProblem} problem */
const placeOf = ({ line, column }) =>
  line === undefined ? {} : { line, ...(column !== undefined && { column }) };

/**
 * @param {string} message
 * @param {string | undefined} at
 * @returns {Problem}
 */
function locateArgument(message, at) {
  const argument = at === undefined ? undefined : listArguments()[Number(at)];
  const place = argument ? { line: argument.line, column: 1 } : {};
  return { field: 'kernel-arguments', ...place, message };
}

/**
 * @param {FieldProblem} problem
 * @param {number} index
 * @param {string} below member of the host
 * @returns {Problem}
 */
function locateInHost(problem, index, below) {
  const { message, path } = problem;
  const host = hostAt(index);
  const id = `host-${index + 1}`;
  if (below.startsWith('mac_')) {
    const [, at = '0', name] = /\[(\d+)\]\.?(\w*)/.exec(below) ?? [];
    const field = name === 'logical_nic_name' ? 'interface' : 'mac';
    return { field: `${id}-${Number(at) + 1}-${field}`, message };
  }
  const field = host ? fieldInHost(host, path) : 'yaml';
  if (field !== 'yaml') return { field: `${id}-${field}`, message: nameMask(withoutPath(message)) };
  return { field: `${id}-yaml`, ...placeOf(problem), message };
}

/**
 * A text with dots where a prefix length belongs was meant as a subnet mask.
 *
 * @param {string} message
 */
const nameMask = (message) =>
  message.replace(
    /^("[\d.]+\.[\d.]*") is not a whole number from 0 to \d+/,
    '$1 is not a subnet mask',
  );
