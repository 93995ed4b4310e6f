import { Option, type Command } from 'commander';
import {
  type ClientAddresses,
  createClientAddresses,
  parseProxy,
} from '../../base/http/client-address.ts';
import { parseSize, SIZE_FORM } from '../../base/text/words.ts';
import { addTo, parseWhole, refuseOption } from '../options.ts';

/* Owns the options for what clients of `sealift serve` may have, and how many processes serve them. */

export type LimitOptions = {
  readonly limitConnections: number;
  readonly limitAddress: number;
  readonly limitTenant: number;
  readonly limitCalls: number;
  /** In bytes. */
  readonly limitBodies: number;
  readonly limitBodiesEach: number;
  readonly trustedProxy: readonly string[];
};

const MIB = 1 << 20;

/** Adds the options; the defaults hold 250 MiB of memory. */
export function addLimitOptions(command: Command): Command {
  const count = (name: string, description: string, value: number): Option =>
    new Option(`--${name} <number>`, description)
      .argParser(parseWhole('usage.limit', [1, 1_000_000], `--${name}`))
      .default(value);
  const size = (name: string, description: string, value: number): Option =>
    new Option(`--${name} <size>`, description)
      .argParser((text: string) => parseLimitSize(text, `--${name}`))
      .default(value * MIB, `${value}MiB`);
  return command
    .addOption(createWorkersOption())
    .addOption(count('limit-connections', 'connections of all clients', 2048))
    .addOption(count('limit-address', 'connections of an address, or of an IPv6 network', 256))
    .addOption(count('limit-tenant', 'requests in flight of a tenant', 512))
    .addOption(count('limit-calls', 'calls a second of an address, and of a tenant', 100))
    .addOption(size('limit-bodies', 'memory for bodies of all requests', 32))
    .addOption(size('limit-bodies-each', 'memory for bodies of an address or a tenant', 8))
    .option(
      '--trusted-proxy <address>',
      'proxy whose X-Forwarded-For names the client: an address or a network; may be repeated',
      (text: string, earlier?: readonly string[]) => addTo(checkProxy(text), earlier),
      [],
    );
}

function parseLimitSize(text: string, option: string): number {
  const size = parseSize(text);
  if (size !== undefined && size >= MIB) return size;
  throw refuseOption('usage.limit', text, { option, expected: `${SIZE_FORM}; 1MiB or more` });
}

function checkProxy(text: string): string {
  if (parseProxy(text)) return text;
  throw refuseOption('usage.trusted-proxy', text, { expected: 'an address, or ADDRESS/PREFIX' });
}

/** Reads who the clients are behind the proxies that the options name. @param isInner true if workers pass requests on */
export function readAddresses({ trustedProxy }: LimitOptions, isInner: boolean): ClientAddresses {
  const proxies = trustedProxy.flatMap((text) => parseProxy(text) ?? []);
  return createClientAddresses({ proxies, isInner });
}

const createWorkersOption = (): Option =>
  new Option(
    '--workers <number>',
    'processes that answer downloads; 1: no others (default: as many as processors, 2 to 4)',
  ).argParser(parseWhole('usage.workers', [1, 64]));
