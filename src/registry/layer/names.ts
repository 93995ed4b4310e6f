import { IntegrityError } from '../../base/errors.ts';

/** PATH_MAX of Linux, bytes: no runtime could unpack a longer name. */
const MAX_PATH_SIZE = 4096;

/** Far above any real image: the time to look up a path grows with its depth. */
const MAX_DEPTH = 255;

/**
 * A tar entry's name as a path from the root of the image, without a leading slash: `/a`, `./a` and
 * `a/` are all `a`, the root itself is ''.
 *
 * @throws IntegrityError `layer.path-escape` for names with `..`, `layer.path-malformed`
 */
export function normaliseName(name: string): string {
  refuseLongPath(name, 'an entry name');
  const components = name.split('/').filter((component) => !['', '.'].includes(component));
  if (components.length > MAX_DEPTH) throw tooDeep(name, components.length);
  if (!components.includes('..')) return components.join('/');
  throw new IntegrityError(
    'layer.path-escape',
    `layer entry "${printable(name)}" leads out of its directory`,
    { hint: 'Do not use this image: no honest tool packs such a name.' },
  );
}

/**
 * @param what `an entry name`
 * @throws IntegrityError `layer.path-malformed` for what no file system can hold
 */
export function refuseLongPath(path: string, what: string): void {
  const size = Buffer.byteLength(path);
  if (size <= MAX_PATH_SIZE && !path.includes('\0')) return;
  throw new IntegrityError(
    'layer.path-malformed',
    `layer has ${what} of ${size} bytes, "${printable(path)}", that no file system can hold`,
    { expected: `at most ${MAX_PATH_SIZE} bytes, none of them 0`, found: `${size} bytes` },
  );
}

/** A path's parent and last component. */
export function splitPath(path: string): { parent: string; name: string } {
  const slash = path.lastIndexOf('/');
  return { parent: slash === -1 ? '' : path.slice(0, slash), name: path.slice(slash + 1) };
}

export const joinPath = (parent: string, name: string): string =>
  parent === '' ? name : `${parent}/${name}`;

const printable = (name: string): string => JSON.stringify(name.slice(0, 200)).slice(1, -1);

const tooDeep = (name: string, depth: number): IntegrityError =>
  new IntegrityError(
    'layer.path-malformed',
    `layer entry "${printable(name)}" is ${depth} directories deep, but at most ${MAX_DEPTH} are read`,
    { expected: `at most ${MAX_DEPTH} components`, found: `${depth} components` },
  );
