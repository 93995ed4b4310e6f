import { isObject } from '../fields.ts';

/**
 * Which layers of an image, bottom to top, may touch a directory (without slashes around it), by the
 * history of its config (OCI image-spec config.md): `ADD` and `COPY` touch the path they name and what
 * is below. Everything else may touch all, such as `RUN`, as may every layer of an image whose history
 * does not have one entry a layer.
 */
export function listTouching(
  config: Uint8Array,
  layers: number,
  directory: string,
): readonly boolean[] {
  const made = readHistory(config).filter((entry) => entry['empty_layer'] !== true);
  if (made.length !== layers) return Array<boolean>(layers).fill(true);
  return made.map((entry) => {
    const target = readTarget(entry['created_by']);
    return target === undefined || isRelated(target, directory);
  });
}

function readHistory(config: Uint8Array): readonly Record<string, unknown>[] {
  const document: unknown = JSON.parse(Buffer.from(config).toString('utf8'));
  const history = isObject(document) ? document['history'] : undefined;
  return Array.isArray(history) && history.every(isObject) ? history : [];
}

/** docker and buildah: `/bin/sh -c #(nop) COPY dir:HASH in /configs`. */
const CLASSIC = /^\/bin\/sh -c #\(nop\) +(?:ADD|COPY) [^\s"[\]]+ in (\/[^\s"'[\]]*) *$/;

/** BuildKit: `COPY --chown=1001 catalog /configs # buildkit`. */
const BUILDKIT = /^(?:ADD|COPY) (?:[^\s"'[\]]+ )+(\/[^\s"'[\]]*) # buildkit$/;

/** Without slashes around it; undefined where the command is another, or is not understood. */
function readTarget(command: unknown): string | undefined {
  if (typeof command !== 'string') return undefined;
  const target = (CLASSIC.exec(command) ?? BUILDKIT.exec(command))?.[1];
  const names = target?.split('/').filter((name) => !['', '.'].includes(name));
  return names === undefined || names.includes('..') ? undefined : names.join('/');
}

const isRelated = (a: string, b: string): boolean => isWithin(a, b) || isWithin(b, a);

const isWithin = (path: string, directory: string): boolean =>
  directory === '' || path === directory || path.startsWith(`${directory}/`);
