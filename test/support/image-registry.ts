import type { Digest } from '../../src/base/digest.ts';
import { planAnswer, readTerms } from '../../src/base/http/plan-answer.ts';
import type { Exchange } from '../../src/base/http/serve-bytes.ts';
import type { StoredManifest } from '../../src/registry/manifest.ts';
import { createReleaseSigner, type ReleaseSigner } from '../../demo/release-signer.ts';
import type { TestImage } from './images.ts';
import { serveLocally, type LocalServer } from './local-http.ts';
import { createThrowAwaySigner } from './throw-away-signer.ts';

export type ImageRegistry = LocalServer & {
  /** Puts an image into a repository, under these tags and its digests. */
  readonly add: (repository: string, image: TestImage, ...tags: string[]) => void;
  /** Of the releases in it. */
  readonly signer: ReleaseSigner;
  /** Answers `path` (`/v2/...`) with this status from now on, or never; without one, as it should. */
  readonly breakPath: (path: string, status?: number | 'never') => void;
};

type Repository = {
  readonly manifests: Map<string, StoredManifest>;
  readonly blobs: Map<Digest, Uint8Array>;
};

/** A registry in memory that serves images by plain HTTP, to readers without credentials. */
export async function serveImages(): Promise<ImageRegistry> {
  const repositories = new Map<string, Repository>();
  const broken = new Map<string, number | 'never'>();
  const server = await serveLocally((request, response) => {
    const path = request.url ?? '';
    const status = broken.get(path);
    if (status === 'never') return;
    if (status !== undefined) response.writeHead(status).end();
    else if (path === '/v2/') response.writeHead(200).end();
    else answer(repositories, { request, response });
  });
  return {
    ...server,
    signer: createReleaseSigner(createThrowAwaySigner()),
    add(name, image, ...tags) {
      const repository: Repository = repositories.get(name) ?? {
        manifests: new Map(),
        blobs: new Map(),
      };
      repositories.set(name, repository);
      for (const stored of image.manifests) {
        repository.manifests.set(stored.descriptor.digest, stored);
      }
      const [top] = image.manifests;
      for (const tag of tags) if (top) repository.manifests.set(tag, top);
      for (const [digest, bytes] of image.blobs) repository.blobs.set(digest, bytes);
    },
    breakPath(path, status) {
      if (status === undefined) broken.delete(path);
      else broken.set(path, status);
    },
  };
}

function answer(
  repositories: ReadonlyMap<string, Repository>,
  { request, response }: Exchange,
): void {
  const [, name = '', kind, key = ''] =
    /^\/v2\/(.+)\/(manifests|blobs)\/([^/]+)$/.exec(decodeURIComponent(request.url ?? '')) ?? [];
  const repository = repositories.get(name);
  const stored = kind === 'manifests' ? repository?.manifests.get(key) : undefined;
  const bytes = stored?.bytes ?? repository?.blobs.get(key as Digest);
  if (bytes === undefined) {
    response.writeHead(404).end('{"errors":[{"code":"MANIFEST_UNKNOWN"}]}');
    return;
  }
  const served = { size: bytes.length, etag: `"${key}"` };
  const terms = readTerms(served, {
    ...(stored && {
      contentType: stored.descriptor.mediaType,
      headers: { 'docker-content-digest': stored.descriptor.digest },
    }),
  });
  const { status, headers, body } = planAnswer(request, terms);
  response.writeHead(status, headers).end(body && bytes.subarray(body.start, body.end + 1));
}
