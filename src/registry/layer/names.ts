import { IntegrityError } from '../../base/errors.ts';

/** PATH_MAX of Linux: no runtime could unpack a longer name. */
const MAX_PATH_SIZE = 4096;

/**
 * A tar entry's name as a path from the root of the image, without a leading slash: `/a`, `./a` and
 * `a/` are all `a`, the root itself is ''.
 *
 * @throws IntegrityError `layer.path-escape` for names with `..`, `layer.path-malformed`
 */
export function normaliseName(name: string): string {
  if (name.includes('\0') || name.length > MAX_PATH_SIZE) {
    throw new IntegrityError(
      'layer.path-malformed',
      `layer has an entry name of ${name.length} characters, "${printable(name)}", that no file system can hold`,
    );
  }
  const components = name.split('/').filter((component) => !['', '.'].includes(component));
  if (!components.includes('..')) return components.join('/');
  throw new IntegrityError(
    'layer.path-escape',
    `layer entry "${printable(name)}" leads out of its directory`,
    { hint: 'Do not use this image: no honest tool packs such a name.' },
  );
}

/** The directories above a path, outermost first: `a/b/c` has '', `a` and `a/b`. */
export function ancestorsOf(path: string): string[] {
  const ancestors = path === '' ? [] : [''];
  for (let slash = path.indexOf('/'); slash !== -1; slash = path.indexOf('/', slash + 1)) {
    ancestors.push(path.slice(0, slash));
  }
  return ancestors;
}

/** A path's parent and last component. */
export function splitPath(path: string): { parent: string; name: string } {
  const slash = path.lastIndexOf('/');
  return { parent: slash === -1 ? '' : path.slice(0, slash), name: path.slice(slash + 1) };
}

export const joinPath = (parent: string, name: string): string =>
  parent === '' ? name : `${parent}/${name}`;

const printable = (name: string): string => JSON.stringify(name.slice(0, 200)).slice(1, -1);
