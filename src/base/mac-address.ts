/** The form of MAC addresses in hints. */
export const MAC_FORM = 'aa:bb:cc:dd:ee:ff, aa-bb-cc-dd-ee-ff, aabb.ccdd.eeff or aabbccddeeff';

const OCTETS = /^[0-9a-f]{1,2}([:-])[0-9a-f]{1,2}(?:\1[0-9a-f]{1,2}){4}$/;
/** Groups of four with points (Cisco) or hyphens (Huawei, H3C), of six (HP), and digits alone. */
const DIGITS = /^(?:[0-9a-f]{4}([.-])[0-9a-f]{4}\1[0-9a-f]{4}|[0-9a-f]{6}[-:]?[0-9a-f]{6})$/;

/**
 * Reads a MAC address (EUI-48) in one of its usual forms; the result is the form of the kernel:
 * `aa:bb:cc:dd:ee:ff`. An octet may lack its first zero, as for NetworkManager and `ether_aton`. Undefined
 * if the text is something else.
 */
export function parseMacAddress(text: string): string | undefined {
  const lower = text.toLowerCase();
  if (OCTETS.test(lower)) {
    return lower
      .split(/[:-]/)
      .map((octet) => octet.padStart(2, '0'))
      .join(':');
  }
  return DIGITS.test(lower) ? lower.replaceAll(/[.:-]/g, '').match(/../g)?.join(':') : undefined;
}
