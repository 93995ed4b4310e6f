import { existsSync, readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { createRedaction } from '../../../src/base/text/redact.ts';
import { createHttp } from '../../../src/base/http/http.ts';
import {
  formatChannel,
  resolveInGraph,
  selectNode,
  type GraphRelease,
  type UpdateGraph,
} from '../../../src/openshift/release/update-graph.ts';
import { formatReference } from '../../../src/registry/reference.ts';
import { serveLocally, type LocalServer } from '../../support/local-http.ts';
import { createTestRetries } from '../../support/test-clock.ts';

const payload = (digit: string): string => `quay.io/ocp/release@sha256:${digit.repeat(64)}`;
const graphOf = (...versions: string[]): Pick<UpdateGraph, 'nodes'> => ({
  nodes: versions.map((version, index) => ({ version, payload: payload(String(index % 10)) })),
});

const answer = (changes: object, version = '4.13.1'): string =>
  JSON.stringify({ nodes: [{ version, payload: payload('1') }], ...changes });

describe('the choice of a node', () => {
  const graph = graphOf('4.13.9', '4.12.58', '4.13.10', '4.13.2', '4.14.0-rc.1', '4.13.11+multi');

  it('takes the newest release of a minor version by precedence, not by text', () => {
    expect(selectNode(graph, '4.13', 'stable-4.13').version).toBe('4.13.11');
  });

  it('takes exactly the release that is named', () => {
    expect(selectNode(graph, '4.13.9', 'stable-4.13')).toEqual({
      version: '4.13.9',
      payload: payload('0'),
    });
  });

  it('leaves build metadata out of the comparison on both sides', () => {
    expect(selectNode(graph, '4.13.11', 'c').version).toBe('4.13.11');
    expect(selectNode(graph, '4.13.10+multi', 'c').version).toBe('4.13.10');
  });

  it('takes a candidate if a minor version has nothing newer', () => {
    expect(selectNode(graph, '4.14', 'candidate-4.14').version).toBe('4.14.0-rc.1');
  });

  it('fails with the nearest releases of the channel instead of taking another one', () => {
    const many = graphOf(...Array.from({ length: 30 }, (_, patch) => `4.13.${patch * 2}`));
    expect(() => selectNode(many, '4.13.21', 'stable-4.13')).toThrow(
      expect.objectContaining({
        code: 'release.not-found',
        exitCode: 3,
        expected: '4.13.21',
        found: '4.13.16, 4.13.18, 4.13.20, 4.13.22, 4.13.24',
      }),
    );
  });

  it('fails with a hint if the channel is empty', () => {
    expect(() => selectNode({ nodes: [] }, '4.99.0', 'stable-4.99')).toThrow(
      expect.objectContaining({ code: 'release.not-found', found: 'an empty channel' }),
    );
  });
});

describe('the name of the channel', () => {
  it('gets the minor version of the release unless it has one', () => {
    expect(formatChannel('stable', '4.20')).toBe('stable-4.20');
    expect(formatChannel('candidate', '4.20.0-rc.1')).toBe('candidate-4.20');
    expect(formatChannel('eus-4.18', '4.20.1')).toBe('eus-4.18');
  });

  it('cannot be made for an invalid version', () => {
    expect(() => formatChannel('stable', 'latest')).toThrow(/"latest" is not X.Y or X.Y.Z/);
  });
});

const REAL = '../shared/data/cincinnati/amd64-stable-4.13.graph.json';

describe.skipIf(!existsSync(REAL))('a published graph', () => {
  it('has 4.13.43 as the newest of stable-4.13', () => {
    const graph = JSON.parse(readFileSync(REAL, 'utf8')) as UpdateGraph;
    const node = selectNode(graph, '4.13', 'stable-4.13');
    expect(node.version).toBe('4.13.43');
    expect(node.payload).toMatch(/^quay\.io\/openshift-release-dev\/ocp-release@sha256:/);
  });

  it('has no 4.13.7, and names the versions next to it', () => {
    const graph = JSON.parse(readFileSync(REAL, 'utf8')) as UpdateGraph;
    expect(() => selectNode(graph, '4.13.7', 'stable-4.13')).toThrow(
      expect.objectContaining({ found: '4.13.4, 4.13.5, 4.13.6, 4.13.8, 4.13.9' }),
    );
  });
});

describe('the request for an update graph', () => {
  let retries = createTestRetries();
  let server: LocalServer | undefined;
  const serve = async (
    answer: (request: IncomingMessage, response: ServerResponse) => void,
  ): Promise<LocalServer> => (server = await serveLocally(answer));
  const ask = (url: string, version = '4.13'): Promise<GraphRelease> =>
    resolveInGraph({
      http: createHttp({ redaction: createRedaction(), env: {}, retries }),
      url,
      version,
      channel: 'stable',
      arch: 'aarch64',
      signal: AbortSignal.timeout(10_000),
    });
  const answerGraph = (response: ServerResponse): void => {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ version: 1, ...graphOf('4.13.1', '4.13.2'), edges: [] }));
  };

  afterEach(async () => {
    retries = createTestRetries();
    await server?.close();
  });

  it('has channel and architecture in the words of the protocol', async () => {
    let accept: string | undefined;
    const { url, requests } = await serve((request, response) => {
      accept = request.headers.accept;
      answerGraph(response);
    });
    const { version, payload: reference } = await ask(`${url}/graph?id=x`);
    expect(requests).toEqual(['GET /graph?id=x&channel=stable-4.13&arch=arm64']);
    expect(accept).toBe('application/json');
    expect(version).toBe('4.13.2');
    expect(formatReference(reference)).toBe(payload('1'));
  });

  it('is retried after a passing failure, after the time that the server asks for', async () => {
    let count = 0;
    const { url, requests } = await serve((_, response) => {
      count++;
      if (count === 1) response.writeHead(503, { 'retry-after': '7' }).end();
      else if (count === 2) response.destroy();
      else answerGraph(response);
    });
    await expect(ask(url)).resolves.toMatchObject({ version: '4.13.2' });
    expect(requests).toHaveLength(3);
    expect(retries.clock.waits[0]).toBeGreaterThanOrEqual(7000);
  });

  it('follows redirects, as company mirrors use them', async () => {
    const { url, requests } = await serve((request, response) => {
      if (request.url?.startsWith('/elsewhere') === true) answerGraph(response);
      else response.writeHead(302, { location: '/elsewhere' }).end();
    });
    await expect(ask(`${url}/graph`)).resolves.toMatchObject({ version: '4.13.2' });
    expect(requests[1]).toBe('GET /elsewhere');
  });

  it('fails with the answer of the service if that refuses', async () => {
    const { url, requests } = await serve((_, response) => {
      response.writeHead(400).end('{"kind":"missing_params","value":"mandatory: channel"}');
    });
    await expect(ask(url)).rejects.toMatchObject({
      code: 'graph.refused',
      message: expect.stringContaining('answers 400: mandatory: channel') as string,
    });
    expect(requests).toHaveLength(1);
  });

  const NODE = { version: '4.13.1', payload: 'quay.io/ocp/release' };

  it.each([
    ['no JSON', '<html>', 'is not JSON'],
    ['no graph', '{}', 'nodes should be a list, but is absent'],
    [
      'half a node',
      '{"nodes":[{"version":"4.13.1"}]}',
      'nodes[0].payload should be a string, but is absent',
    ],
    ['a version with a line break', answer({}, '4.13.1\n'), 'nodes[0].version is not a version'],
    ['an edge of no numbers', answer({ edges: [[null, '0']] }), 'in edges[0]'],
    ['an edge of texts', answer({ edges: [['0', '0']] }), 'in edges[0]'],
    ['an edge to no node', answer({ edges: [[0, 1]] }), 'in edges[0]'],
    [
      'more nodes than releases',
      JSON.stringify({ nodes: Array(5001).fill(NODE) }),
      'more than 5000',
    ],
  ])('fails for an answer that is %s', async (_, text, reason) => {
    const { url } = await serve((__, response) => response.end(text));
    await expect(ask(url)).rejects.toMatchObject({
      code: 'graph.malformed',
      message: expect.stringContaining(reason) as string,
    });
  });

  it('fails for a release that the graph names by tag', async () => {
    const nodes = [{ version: '4.13.1', payload: 'quay.io/ocp/release:4.13.1' }];
    const { url } = await serve((_, response) => response.end(JSON.stringify({ nodes })));
    await expect(ask(url)).rejects.toMatchObject({ code: 'release.not-pinned', exitCode: 5 });
  });

  it('fails for an invalid address of the update graph', async () => {
    await expect(ask('graph.example.com')).rejects.toMatchObject({ code: 'graph.url-malformed' });
  });
});
