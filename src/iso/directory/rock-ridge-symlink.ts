import { append } from '../../base/lists.ts';
import { requireBytes } from '../bounds.ts';
import type { SystemUseEntry } from './system-use.ts';

/** RRIP 4.1.3.1: flags of a component record. */
const COMPONENT = { continues: 1, current: 2, parent: 4, root: 8 } as const;
const ENTRY_CONTINUES = 1;
const MAX_DATA = 251;

/**
 * RRIP 4.1.3: the target of a symbolic link from all its SL entries, in order.
 *
 * @throws IntegrityError `iso.truncated` when a component is longer than its entry
 */
export function decodeSymlink(entries: readonly SystemUseEntry[]): string {
  let target = '';
  let isStartOfComponent = true;
  for (const { data } of entries) {
    for (let at = 1; at < data.length;) {
      requireBytes(data, { at, size: 2 });
      const flags = data[at] ?? 0;
      const size = data[at + 1] ?? 0;
      requireBytes(data, { at: at + 2, size });
      if (isStartOfComponent && target !== '' && !target.endsWith('/')) target += '/';
      target += textOfComponent(flags, data.subarray(at + 2, at + 2 + size));
      isStartOfComponent = (flags & COMPONENT.continues) === 0;
      at += 2 + size;
    }
  }
  return target;
}

function textOfComponent(flags: number, content: Uint8Array): string {
  if (flags & COMPONENT.root) return '/';
  if (flags & COMPONENT.current) return '.';
  if (flags & COMPONENT.parent) return '..';
  return Buffer.from(content).toString('utf8');
}

/** As many SL entries as the target needs. Repeated and trailing slashes are not kept. */
export function encodeSymlink(target: string): SystemUseEntry[] {
  const groups: Uint8Array[][] = [[]];
  let size = 1;
  for (const component of componentsOf(target)) {
    if (size + component.length > MAX_DATA) {
      groups.push([]);
      size = 1;
    }
    groups.at(-1)?.push(component);
    size += component.length;
  }
  return groups.map((components, index) => ({
    signature: 'SL',
    version: 1,
    data: Buffer.concat([
      Uint8Array.of(index + 1 < groups.length ? ENTRY_CONTINUES : 0),
      ...components,
    ]),
  }));
}

function componentsOf(target: string): Uint8Array[] {
  const components: Uint8Array[] = target.startsWith('/') ? [Uint8Array.of(COMPONENT.root, 0)] : [];
  for (const part of target.split('/').filter((text) => text !== '')) {
    if (part === '.') components.push(Uint8Array.of(COMPONENT.current, 0));
    else if (part === '..') components.push(Uint8Array.of(COMPONENT.parent, 0));
    else append(components, namedComponents(Buffer.from(part, 'utf8')));
  }
  return components;
}

/** A name longer than one record's 248 bytes goes on in the next. */
function namedComponents(name: Uint8Array): Uint8Array[] {
  const limit = MAX_DATA - 3;
  const parts: Uint8Array[] = [];
  for (let at = 0; at < name.length; at += limit) {
    const part = name.subarray(at, at + limit);
    const flags = at + limit < name.length ? COMPONENT.continues : 0;
    parts.push(Buffer.concat([Uint8Array.of(flags, part.length), part]));
  }
  return parts;
}
