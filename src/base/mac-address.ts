/** The form of MAC addresses in hints. */
export const MAC_FORM = 'aa:bb:cc:dd:ee:ff, aa-bb-cc-dd-ee-ff, aabb.ccdd.eeff or aabbccddeeff';

const FORMS = [
  /^[0-9a-f]{2}(?::[0-9a-f]{2}){5}$/,
  /^[0-9a-f]{2}(?:-[0-9a-f]{2}){5}$/,
  /^[0-9a-f]{4}(?:\.[0-9a-f]{4}){2}$/,
  /^[0-9a-f]{12}$/,
];

/**
 * Reads a MAC address (EUI-48) in one of its usual forms; the result is the form of the kernel:
 * `aa:bb:cc:dd:ee:ff`. Undefined if the text is something else.
 */
export function parseMacAddress(text: string): string | undefined {
  const lower = text.toLowerCase();
  if (!FORMS.some((form) => form.test(lower))) return undefined;
  return lower.replaceAll(/[.:-]/g, '').match(/../g)?.join(':');
}
