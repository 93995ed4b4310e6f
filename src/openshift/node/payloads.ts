import { objectOrEmpty } from '../../base/lists.ts';
import { decodeBase64 } from '../../base/text/base64.ts';

/*
 * Owns `data`, `stringData` and `binaryData` of Secrets and ConfigMaps, by the rules of the Kubernetes API,
 * which refuses the whole object for one wrong value.
 */

type Members = Readonly<Record<string, unknown>>;

/** A fault at a path of an object. The value, which may be a secret, is not part of it. */
export type PayloadFault = { readonly path: readonly string[]; readonly problem: string };

type Form = 'text' | 'base64';

const FORMS: Readonly<Record<string, Readonly<Record<string, Form>>>> = {
  Secret: { data: 'base64', stringData: 'text' },
  ConfigMap: { data: 'text', binaryData: 'base64' },
};

/** Empty for objects of other kinds. */
export function findPayloadFaults(object: Members): readonly PayloadFault[] {
  const { kind, apiVersion = 'v1' } = object;
  const forms = apiVersion === 'v1' && typeof kind === 'string' ? FORMS[kind] : undefined;
  const faults = Object.entries(forms ?? {}).flatMap(([member, form]) =>
    findMemberFaults(member, form, object[member] ?? {}),
  );
  const texts = kind === 'ConfigMap' ? objectOrEmpty(object['data']) : {};
  const repeated = Object.keys(objectOrEmpty(object['binaryData'])).filter((key) =>
    Object.hasOwn(texts, key),
  );
  return forms === undefined
    ? []
    : [
        ...faults,
        ...repeated.map((key) => ({ path: ['binaryData', key], problem: 'is in data, too' })),
      ];
}

function findMemberFaults(member: string, form: Form, values: unknown): readonly PayloadFault[] {
  if (typeof values !== 'object' || values === null || Array.isArray(values)) {
    return [{ path: [member], problem: 'is not a mapping' }];
  }
  return Object.entries(values).flatMap(([key, value]) => {
    const problem = explainKey(key) ?? explainValue(form, value);
    return problem === undefined ? [] : [{ path: [member, key], problem }];
  });
}

/** IsConfigMapKey of apimachinery's validation. */
const explainKey = (key: string): string | undefined =>
  /^(?!\.\.|\.$)[-._a-zA-Z0-9]{1,253}$/.test(key)
    ? undefined
    : 'has a key of other characters than letters, digits, ".", "_" and "-"';

function explainValue(form: Form, value: unknown): string | undefined {
  if (value === null) return undefined;
  if (typeof value === 'number' || typeof value === 'boolean') {
    return `is a ${typeof value}, not a text: write it in quotes`;
  }
  if (typeof value === 'object' && !(value instanceof Date || value instanceof Uint8Array)) {
    return 'is not a text: write it as a block, behind "|"';
  }
  return form === 'base64' && typeof value === 'string' && !decodeBase64(value)
    ? 'is not base64'
    : undefined;
}

/** The text of a Secret's key; `stringData` goes before `data`. Undefined if it is absent, or not base64. */
export function readSecretText(
  { data, stringData }: Members,
  key: string,
): { readonly member: 'data' | 'stringData'; readonly text: string } | undefined {
  const plain = objectOrEmpty(stringData)[key];
  if (typeof plain === 'string') return { member: 'stringData', text: plain };
  const encoded = objectOrEmpty(data)[key];
  const bytes = typeof encoded === 'string' ? decodeBase64(encoded) : undefined;
  return bytes && { member: 'data', text: bytes.toString('utf8') };
}
