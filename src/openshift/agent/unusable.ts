import { isAddressOrHostName } from '../../base/host-name.ts';
import { explainNoProxy } from '../../base/http/no-proxy.ts';
import { objectOrEmpty } from '../../base/lists.ts';
import { readSshKeys } from '../../keys/index.ts';
import { nameOf, refuseResource, type Resource } from './resources.ts';

/** Members of an InfraEnv whose text has a form of its own, with the reader of that form. */
const READERS: Readonly<Record<string, (text: string) => string | undefined>> = {
  'sshAuthorizedKey': (text) => readSshKeys(text).problem,
  'additionalNTPSources': explainTimeServer,
  'ntpSources': explainTimeServer,
  'proxy.noProxy': explainNoProxy,
};

/**
 * Requires that hosts can use what an InfraEnv of a build gives them.
 *
 * @throws ConfigError `customize.resource`
 */
export function requireUsable(infraEnv: Resource): void {
  for (const [path, explain] of Object.entries(READERS)) {
    const [member = '', below] = path.split('.');
    const value = infraEnv.spec[member];
    const given = below === undefined ? value : objectOrEmpty(value)[below];
    for (const text of Array.isArray(given) ? given : [given]) {
      const why = typeof text === 'string' && text !== '' ? explain(text) : undefined;
      if (why !== undefined) throw refuseResource(`${nameOf(infraEnv)}: spec.${path} ${why}`);
    }
  }
}

function explainTimeServer(text: string): string | undefined {
  return isAddressOrHostName(text) ? undefined : `"${text}" is neither a name nor an address`;
}
