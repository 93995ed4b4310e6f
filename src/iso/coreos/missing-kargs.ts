import type { KargAreas } from './kargs.ts';

/**
 * Arguments without which a live ISO of CoreOS does not do what it was made for:
 *
 * | name | read by |
 * |---|---|
 * | `coreos.liveiso` | the initramfs, which looks for the volume of this name |
 * | `ignition.firstboot` | Ignition's generator: without it no config is applied |
 * | `ignition.platform.id` | Ignition, which stops without it |
 */
const NEEDED: readonly string[] = ['coreos.liveiso', 'ignition.firstboot', 'ignition.platform.id'];

/** Values that Ignition's generator reads as false. */
const OFF: readonly string[] = ['', '0', 'no', 'off'];

/**
 * Lists the default arguments that an ISO needs to boot and to apply its Ignition config, and no longer has,
 * in their order. An argument with another value counts as present, except `ignition.firstboot` with a value
 * that turns it off. Whether `coreos.liveiso` names this volume is checked by `readCoreosLive`.
 */
export function findMissingKargs({
  text,
  default: defaults,
}: Pick<KargAreas, 'text' | 'default'>): readonly string[] {
  const now = new Map(splitWords(text).map((word) => [nameOf(word), word]));
  return splitWords(defaults).filter((word) => {
    const name = nameOf(word);
    return NEEDED.includes(name) && !isSet(now.get(name));
  });
}

const splitWords = (text: string): readonly string[] => text.split(/\s+/).filter(Boolean);

const nameOf = (word: string): string => word.replace(/=.*$/s, '');

function isSet(word: string | undefined): boolean {
  if (word === undefined) return false;
  const [name, value] = /^([^=]*)(?:=(.*))?$/s.exec(word)?.slice(1) ?? [];
  return value === undefined ? name === 'ignition.firstboot' : !OFF.includes(value);
}
