import { readNetworkText } from '../../nmstate/index.ts';
import { identify, readBody, type Exchange, type Service } from '../context.ts';

/* Owns the reading of networks in YAML for a form that shows their members. */

type Asked = { readonly networks: readonly string[] };

/** Most values of one network that a form could show: it has some thirty. */
const MOST_VALUES = 500;

/** Answers `sealiftReadNetworks`: the value of each text, or its fault. */
export async function readNetworks(service: Service, exchange: Exchange): Promise<Response> {
  await identify(service, exchange);
  const { networks } = await readBody<Asked>(service, exchange, 'networks-read-params');
  return exchange.json(
    networks.map((text) => {
      const { value, fault } = readNetworkText(text, { values: 0, most: MOST_VALUES });
      const { problem: message, ...place } = fault ?? { problem: '' };
      return fault ? { ...place, message } : { value };
    }),
  );
}
