import { ConfigError } from '../../base/errors.ts';
import { readYamlTokens, YamlExcess } from '../../shape/parse-text.ts';
import { parseDocument } from '../../shape/parse-text.ts';
import { sleep } from '../../base/wait.ts';
import { profilesOf } from '../../openshift/agent/values.ts';
import { ApiFailure } from '../api-failure.ts';
import type { StaticNetwork } from './infra-env.ts';

/** What is planned for an InfraEnv is planned at once: this is about a second. A host has some 15 values. */
const MOST_VALUES = 25_000;
const MOST_VALUES_OF_HOST = 5000;
const MOST_LEXEMES = 30_000;
const MOST_INTERFACES = 4096;
/** nmstate has nothing below the tenth level. */
const MOST_NESTED = 32;

/**
 * Refuses networks that no profiles can be made of, or too many. Whoever reads the reason may be somebody who reads
 * logs: it quotes nothing of a text that is not YAML, which may have passwords.
 *
 * @throws ApiFailure 400 that names the field
 */
export async function checkNetworks(networks: readonly StaticNetwork[] = []): Promise<void> {
  const interfaces = networks.flatMap(({ mac_interface_map: map = [] }) => map).length;
  if (interfaces > MOST_INTERFACES) {
    throw refuse('static_network_config', `has more than ${MOST_INTERFACES} interfaces`);
  }
  let values = 0;
  for (const [index, { network_yaml: text = '' }] of networks.entries()) {
    if (text.trim() === '') continue;
    values += checkNetwork(text, `static_network_config[${index}].network_yaml`);
    if (values > MOST_VALUES) {
      throw refuse('static_network_config', `has more than ${MOST_VALUES} values`);
    }
    await sleep(0, new AbortController().signal); // others are answered in between
  }
}

const refuse = (field: string, problem: string): ApiFailure =>
  new ApiFailure(400, `${field} ${problem}`);

/** @returns how many values it has */
function checkNetwork(networkConfig: string, field: string): number {
  const count = countValues(parseNetwork(networkConfig, field), field);
  try {
    profilesOf({ networkConfig, interfaces: [] });
  } catch (error) {
    if (error instanceof ConfigError) throw refuse(field, `cannot be used: ${error.message}`);
    throw error;
  }
  return count;
}

function parseNetwork(text: string, field: string): unknown {
  try {
    const tokens = readYamlTokens(text, { most: MOST_LEXEMES });
    while (tokens.next().done !== true);
  } catch (error) {
    if (!(error instanceof YamlExcess)) throw error;
    throw refuse(field, `has too much: ${error.message}`);
  }
  const document = parseDocument(text, { prettyErrors: false });
  const [error] = document.errors;
  if (error) throw refuse(field, `is not YAML: ${error.code} at character ${error.pos[0]}`);
  try {
    return document.toJS() as unknown;
  } catch (cause) {
    // The library throws for what it can only find now: it has no code, and may quote a name.
    if (!(cause instanceof Error)) throw cause;
    throw refuse(field, 'has aliases or merge keys that cannot be resolved');
  }
}

/** Aliases count as what they stand for. */
function countValues(value: unknown, field: string): number {
  let count = 0;
  const visit = (each: unknown, depth: number): void => {
    if (++count > MOST_VALUES_OF_HOST) {
      throw refuse(field, `has more than ${MOST_VALUES_OF_HOST} values`);
    }
    if (typeof each !== 'object' || each === null) return;
    if (depth === MOST_NESTED) throw refuse(field, `is nested more than ${MOST_NESTED} deep`);
    for (const member of Object.values(each)) visit(member, depth + 1);
  };
  visit(value, 0);
  return count;
}
