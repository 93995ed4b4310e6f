import { formatGoJson, omitEmpty } from './go-json.ts';

export type DigestSource = {
  readonly source: string;
  readonly mirrors: readonly string[];
  readonly sourcePolicy?: string;
};

/** ImageDigestMirrorSet on one line, entries in the order of `sources` and none merged. */
export function renderDigestMirrorSet(sources: readonly DigestSource[]): string {
  const mirrors = sources.map(({ source, mirrors, sourcePolicy }) => [
    ['source', source] as const,
    ...omitEmpty([
      ['mirrors', mirrors],
      ['mirrorSourcePolicy', sourcePolicy],
    ]),
  ]);
  return formatGoJson(
    new Map<string, Parameters<typeof formatGoJson>[0]>([
      ['kind', 'ImageDigestMirrorSet'],
      ['apiVersion', 'config.openshift.io/v1'],
      ['metadata', new Map([['name', 'image-digest-mirror']])],
      ['spec', new Map([['imageDigestMirrors', mirrors.map((members) => new Map(members))]])],
      ['status', new Map<string, string>()],
    ]),
  );
}
