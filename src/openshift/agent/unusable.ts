import { explainHostName, isAddressOrHostName } from '../../base/host-name.ts';
import { explainNoProxy, explainProxyUrl } from '../../base/http/typed-proxy.ts';
import { isOfNoHost, parseAddress } from '../../base/ip-address.ts';
import { objectOrEmpty } from '../../base/lists.ts';
import { joinProblem } from '../../base/text/words.ts';
import { explainBundle, readSshKeys } from '../../keys/index.ts';
import { judgePullSecret } from '../../registry/index.ts';
import { refuseResource, type Resource } from './resources.ts';

/* Owns the rules of the values of hosts, whichever command gives them. */

type Explain = (text: string) => string | undefined;

/** Explains why no host can use a value, by kind of value; undefined if hosts can. */
export const explainUnusable = {
  hostname: explainHostName,
  noProxy: explainNoProxy,
  proxy: explainProxyUrl,
  pullSecret: (text) => judgePullSecret(text, { isForHosts: true })[0],
  sshKeys: (text) => readSshKeys(text).problem,
  timeServer: explainTimeServer,
  trustBundle: explainBundle,
} as const satisfies Readonly<Record<string, Explain>>;

function explainTimeServer(text: string): string | undefined {
  if (!isAddressOrHostName(text)) return `"${text}" is neither a name nor an address`;
  const address = parseAddress(text);
  return address && isOfNoHost(address) ? `"${text}" is the address of no host` : undefined;
}

/** Members of an InfraEnv whose text has a form of its own. */
const MEMBERS: Readonly<Record<string, Explain>> = {
  'sshAuthorizedKey': explainUnusable.sshKeys,
  'additionalNTPSources': explainUnusable.timeServer,
  'ntpSources': explainUnusable.timeServer,
  'additionalTrustBundle': explainUnusable.trustBundle,
  'proxy.httpProxy': explainUnusable.proxy,
  'proxy.httpsProxy': explainUnusable.proxy,
  'proxy.noProxy': explainUnusable.noProxy,
};

/** @throws ConfigError `customize.resource` that names file, line and member */
export function requireUsable(infraEnv: Resource): void {
  for (const [member, explain] of Object.entries(MEMBERS)) {
    const path = `spec.${member}`;
    const [name = '', below] = member.split('.');
    const value = infraEnv.spec[name];
    const given = below === undefined ? value : objectOrEmpty(value)[below];
    if (!Array.isArray(given)) requireValue(infraEnv, path, { value: given, explain });
    else
      for (const [index, each] of given.entries())
        requireValue(infraEnv, `${path}[${index}]`, { value: each, explain });
  }
}

/** Accepts a value that is not a text. */
export function requireValue(
  resource: Resource,
  path: string,
  { value, explain }: { readonly value: unknown; readonly explain: Explain },
): void {
  const why = typeof value === 'string' && value.trim() !== '' ? explain(value) : undefined;
  if (why === undefined) return;
  const member = `${resource.placeOf(path)}: ${path} of the ${resource.kind}`;
  throw refuseResource(joinProblem(member, why));
}
