import type { X509Certificate } from 'node:crypto';
import { parse } from '../../../shape/parse-text.ts';
import { ConfigError } from '../../../base/errors.ts';
import { findYamlExcess } from '../../../shape/parse-text.ts';
import { isSameKey, parseRetainedCertificate, parseRetainedKey } from './retained-pem.ts';
import { mismatch } from './retained-files.ts';
import type { KeyPair } from '../site-identity.ts';
import { isObject } from '../../../base/lists.ts';

/** What a kubeconfig of an administrator says of a cluster's identity. */
export type RetainedKubeconfig = {
  readonly shownAs: string;
  readonly server: string;
  /** Whose certificates its reader trusts. */
  readonly authorities: readonly X509Certificate[];
  readonly client: KeyPair;
};

type Value = Readonly<Record<string, unknown>>;

/**
 * Reads the cluster and the user of the current context, certificates and key inside the file.
 *
 * @param shownAs the file, for errors, which never quote what is in it
 * @throws ConfigError `retained.kubeconfig`, `retained.not-pem`, `retained.not-rsa`,
 * `retained.mismatch`
 */
export function parseRetainedKubeconfig(text: string, shownAs: string): RetainedKubeconfig {
  const config = parseYaml(text, shownAs);
  const context = config['current-context'];
  const { cluster: clusterName, user: userName } = findNamed(config, 'contexts', context);
  const cluster = findNamed(config, 'clusters', clusterName);
  const user = findNamed(config, 'users', userName);
  const read = (value: Value, key: string): string => {
    const member = value[key];
    if (typeof member === 'string') return member;
    throw unusable(shownAs, `the current context has no ${key}`);
  };
  const decode = (value: Value, key: string): string =>
    Buffer.from(read(value, key), 'base64').toString('latin1');
  const privateKey = parseRetainedKey(decode(user, 'client-key-data'), `${shownAs}: client key`);
  const certificate = parseRetainedCertificate(
    decode(user, 'client-certificate-data'),
    `${shownAs}: client certificate`,
  );
  if (!isSameKey(privateKey, certificate)) {
    throw mismatch(`${shownAs} has a client certificate that is not of its client key`);
  }
  const bundle = decode(cluster, 'certificate-authority-data');
  return {
    shownAs,
    server: read(cluster, 'server'),
    authorities: splitBundle(bundle).map((pem) =>
      parseRetainedCertificate(pem, `${shownAs}: certificate authority`),
    ),
    client: { privateKey, certificate: certificate.toString() },
  };
}

/** The parser's own message would quote the text, keys and all. */
function parseYaml(text: string, shownAs: string): Value {
  const excess = findYamlExcess(text);
  if (excess) throw unusable(shownAs, excess.message);
  let value: unknown;
  try {
    value = parse(text);
  } catch {
    throw unusable(shownAs, 'it is not YAML');
  }
  if (isObject(value)) return value;
  throw unusable(shownAs, 'it is not a YAML mapping');
}

/** What `list` has by that name: the member that is called like the list, in the singular. */
function findNamed(config: Value, list: string, name: unknown): Value {
  const entries: unknown = config[list];
  const found: unknown = Array.isArray(entries)
    ? entries.find((entry: unknown) => isObject(entry) && entry['name'] === name)
    : undefined;
  const member = isObject(found) ? found[list.slice(0, -1)] : undefined;
  return isObject(member) ? member : {};
}

const splitBundle = (text: string): readonly string[] =>
  text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n?/g) ?? [];

const unusable = (shownAs: string, problem: string): ConfigError =>
  new ConfigError(
    'retained.kubeconfig',
    `${shownAs} is not a kubeconfig that can be used: ${problem}`,
    {
      hint: "give the administrator's kubeconfig as it was made, with its certificates inside",
    },
  );
