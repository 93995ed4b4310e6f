import { describe, expect, it } from 'vitest';
import { findUpgradePath } from '../../../src/openshift/release/upgrade-path.ts';
import type { UpdateGraph } from '../../../src/openshift/release/update-graph.ts';

const RISK = {
  name: 'SlowDisks',
  message: 'Slow disks lose quorum.',
  url: 'https://issues.example/1',
};

/** Edges as `from to`; conditional ones end in `?`. */
function graphOf(...edges: readonly string[]): UpdateGraph {
  const parsed = edges.map((edge) => {
    const [from = '', to = ''] = edge.replace('?', '').split(' ');
    return { from, to, isConditional: edge.endsWith('?') };
  });
  const versions = new Set(parsed.flatMap(({ from, to }) => [from, to]));
  return {
    nodes: [...versions].map((version) => ({ version, payload: `quay.io/ocp@${version}` })),
    edges: parsed.filter(({ isConditional }) => !isConditional),
    conditionalEdges: parsed
      .filter(({ isConditional }) => isConditional)
      .map((edge) => ({ ...edge, risks: [RISK] })),
  };
}

const pathOf = (graph: UpdateGraph, from: string, to: string): readonly string[] | undefined =>
  findUpgradePath(graph, from, to)?.map(({ version }) => version);

describe('the path of an upgrade', () => {
  it('passes the newest release if paths of the same length differ in one', () => {
    const middles = ['4.21.3', '4.21.11', '4.21.9'];
    const edges = middles.flatMap((middle) => [`4.20.9 ${middle}`, `${middle} 4.22.1`]);
    for (const order of [edges, edges.toReversed()]) {
      expect(pathOf(graphOf(...order), '4.20.9', '4.22.1')).toEqual(['4.21.11', '4.22.1']);
    }
  });

  it('passes the newest release if paths have the same number of conditional updates', () => {
    const edges = ['4.20.9 4.21.3', '4.21.3 4.22.1?', '4.20.9 4.21.8?', '4.21.8 4.22.1'];
    for (const order of [edges, edges.toReversed()]) {
      expect(pathOf(graphOf(...order), '4.20.9', '4.22.1')).toEqual(['4.21.8', '4.22.1']);
    }
  });

  it('passes the newest release last if longer paths of the same length differ in two', () => {
    const edges = [
      ...['4.19.1 4.20.7', '4.20.7 4.21.3', '4.21.3 4.22.1'],
      ...['4.19.1 4.20.5', '4.20.5 4.21.4', '4.21.4 4.22.1'],
    ];
    for (const order of [edges, edges.toReversed()]) {
      expect(pathOf(graphOf(...order), '4.19.1', '4.22.1')).toEqual(['4.20.5', '4.21.4', '4.22.1']);
    }
  });

  it('prefers more updates to a conditional one', () => {
    const graph = graphOf('4.20.9 4.22.1?', '4.20.9 4.20.12', '4.20.12 4.21.3', '4.21.3 4.22.1');
    expect(pathOf(graph, '4.20.9', '4.22.1')).toEqual(['4.20.12', '4.21.3', '4.22.1']);
  });

  it('is undefined if no edge of the graph leads to the release', () => {
    expect(pathOf(graphOf('4.20.9 4.21.3', '4.21.4 4.22.1'), '4.20.9', '4.22.1')).toBeUndefined();
  });
});
