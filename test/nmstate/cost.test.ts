import { expect, it } from 'vitest';
import { judgeNetwork, planHosts } from '../../src/nmstate/plan.ts';

const { signal } = new AbortController();

/** A document in which each interface needs others: VLANs in a chain, ports of one bond, routes, warnings of all. */
function writeNetwork(count: number): { readonly text: string; readonly names: readonly string[] } {
  const names = Array.from({ length: count }, (_, at) => `e${at}`);
  const interfaces = names.flatMap((name, at) => [
    { name, mtu: 9000 },
    {
      name: `v${at}`,
      type: 'vlan',
      mtu: 1500,
      vlan: { 'base-iface': at === 0 ? name : `v${at - 1}`, 'id': 7 },
      ipv4: { enabled: true, address: [{ 'ip': addressOf(at), 'prefix-length': 24 }] },
    },
  ]);
  const bond = { 'name': 'b', 'type': 'bond', 'link-aggregation': { mode: 1, port: names } };
  const routes = names.map((_, at) => ({
    'destination': addressOf(at, 172),
    'next-hop-address': addressOf(at, 11),
    'next-hop-interface': `v${at}`,
  }));
  const document = { interfaces: [...interfaces, bond], routes: { config: routes } };
  return { text: JSON.stringify(document, null, 1), names };
}

const addressOf = (at: number, first = 10): string => `${first}.${at >> 8}.${at & 255}.9`;

/** The best of three times of the processor, in microseconds. */
async function measure(count: number): Promise<number> {
  const { text, names } = writeNetwork(count);
  const interfaces = names.map((name, at) => ({
    name,
    macAddress: `02:00:00:00:${(at >> 8).toString(16).padStart(2, '0')}:${(at & 255).toString(16).padStart(2, '0')}`,
  }));
  const times: number[] = [];
  for (let run = 0; run < 3; run++) {
    const start = process.cpuUsage();
    let warned = 0;
    const warn = (): void => {
      warned++;
    };
    const host = { networkConfig: text, interfaces, source: 'net.yaml' };
    await planHosts([host], { signal, warn });
    judgeNetwork(JSON.parse(text), { interfaces });
    const { user, system } = process.cpuUsage(start);
    times.push(user + system);
    expect(warned).toBeGreaterThan(count);
  }
  return Math.min(...times);
}

it('is judged and written in time that grows with its interfaces, not with their square', async () => {
  const [small, large] = [await measure(100), await measure(1000)];
  // In proportion it would be 10, with the square 100.
  expect(large / small).toBeLessThan(50);
});
