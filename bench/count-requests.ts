import { subscribe } from 'node:diagnostics_channel';
import type { IncomingMessage } from 'node:http';

/** What was asked of a registry; HEAD and GET of a path are counted together. */
export type RequestCounts = {
  readonly connections: number;
  readonly manifests: PathCounts;
  /** Of tags that cosign's signatures have. */
  readonly signatureTags: PathCounts;
  readonly blobs: PathCounts;
};

type PathCounts = {
  readonly requests: number;
  /** Requests beyond the first of each path, of which some are listed. */
  readonly repeated: number;
  readonly examples: readonly string[];
};

type Kind = Exclude<keyof RequestCounts, 'connections'>;

/** Counts what the HTTP servers of this process are asked; returns a function that starts afresh. */
export function countRequests(): () => RequestCounts {
  let paths = new Map<string, number>();
  let connections = 0;
  subscribe('net.server.socket', () => {
    connections += 1;
  });
  subscribe('http.server.request.start', (message) => {
    const { url = '' } = (message as { readonly request: IncomingMessage }).request;
    paths.set(url, (paths.get(url) ?? 0) + 1);
  });
  return () => {
    const taken = [...paths];
    const connected = connections;
    paths = new Map();
    connections = 0;
    const count = (kind: Kind): PathCounts =>
      sumUp(taken.filter(([path]) => kindOf(path) === kind));
    return {
      connections: connected,
      manifests: count('manifests'),
      signatureTags: count('signatureTags'),
      blobs: count('blobs'),
    };
  };
}

function kindOf(path: string): Kind | undefined {
  if (path.endsWith('.sig')) return 'signatureTags';
  if (path.includes('/manifests/')) return 'manifests';
  return path.includes('/blobs/') ? 'blobs' : undefined;
}

function sumUp(paths: readonly (readonly [string, number])[]): PathCounts {
  const requests = paths.reduce((total, [, count]) => total + count, 0);
  const examples = paths
    .filter(([, count]) => count > 1)
    .map(([path, count]) => `${count} ${path}`);
  return { requests, repeated: requests - paths.length, examples: examples.slice(0, 5) };
}
