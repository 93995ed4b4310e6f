import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { hexOf, type Digest } from '../base/digest.ts';
import { ConfigError } from '../base/errors.ts';
import { digestFile, hasFile } from '../base/files.ts';
import type { Http, TlsOptions } from '../base/http.ts';
import { redactUrl } from '../base/redact.ts';
import { downloadFile } from '../openshift/files/download.ts';
import { findKept, keepFile } from '../openshift/files/kept-file.ts';
import type { BaseIso } from './fetch-base-iso.ts';

/** A live ISO that the user names: a path, or an https address with the digest of its bytes. */
export type NamedBaseIso =
  { readonly file: string } | { readonly url: string; readonly sha256: Digest };

export type FetchGivenTools = {
  readonly http: Http;
  readonly tls: TlsOptions;
  readonly signal: AbortSignal;
  readonly onProgress: (bytes: number, total?: number) => void;
};

/**
 * The live ISO itself. A second run finds what the first has downloaded, under the name of its digest.
 *
 * @throws ConfigError `base-iso.missing`; IntegrityError `download.digest`
 */
export async function fetchGivenBaseIso(
  given: NamedBaseIso,
  workDir: string,
  tools: FetchGivenTools,
): Promise<BaseIso> {
  if ('file' in given) return readFile(given.file);
  const { url, sha256 } = given;
  const from = redactUrl(url);
  const path = join(workDir, 'cache', 'base', `${hexOf(sha256)}.iso`);
  const known = await findKept(path);
  if (known?.digest === sha256) return { ...known, from };
  const aside = `${path}.partial`;
  await downloadFile({ ...tools, url: new URL(url), digest: sha256, path: aside });
  return { ...(await keepFile(aside, path, sha256)), from };
}

async function readFile(path: string): Promise<BaseIso> {
  if (!(await hasFile(path))) {
    throw new ConfigError('base-iso.missing', `base ISO "${path}" does not exist`, {
      hint: 'check --base-iso, or name a release with --release to use its live ISO',
    });
  }
  const { size } = await stat(path);
  return { path, size, digest: await digestFile(path), from: path };
}
