import { statSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Document } from 'yaml';
import { isDigest, type Digest, hexOf } from '../../base/digest.ts';
import { readInputFile, readListed, unlessAbsent } from '../../base/disk/files.ts';
import { ConfigError } from '../../base/errors.ts';
import { objectOrEmpty } from '../../base/lists.ts';
import { parseKeys, type SigningKey } from '../../openpgp/index.ts';
import { splitDocuments } from '../node/manifests.ts';

export type StoredSignature = {
  readonly digest: Digest;
  /** Signature as written: base64 if it is well-formed. */
  readonly signature: string;
};

/** Maximum bytes of a signature, the same that consumers of signature stores read. */
export const MAX_SIGNATURE_SIZE = 50 * 1024;

const LABEL = 'release.openshift.io/verification-signatures';

/** True if a document is a ConfigMap of release signatures, as oc and oc-mirror write it. */
export const isOfSignatures = (document: Document): boolean =>
  document.get('kind') === 'ConfigMap' && document.hasIn(['metadata', 'labels', LABEL]);

/** Keys are `sha256-<hex>-<n>`; others are ignored. */
export function listStoredSignatures(configMap: object): StoredSignature[] {
  const { binaryData } = configMap as { binaryData?: unknown };
  return Object.entries(objectOrEmpty(binaryData)).flatMap(([key, signature]) => {
    const digest = key.replace(/^sha256-([0-9a-f]+)-\d+$/, 'sha256:$1');
    return isDigest(digest) && typeof signature === 'string' ? [{ digest, signature }] : [];
  });
}

/** True if it is base64 of a size that a signature may have. */
export const isWellFormed = ({ signature }: StoredSignature): boolean =>
  signature.length <= (MAX_SIGNATURE_SIZE * 4) / 3 &&
  /^[A-Za-z0-9+/]+={0,2}$/.test(signature.replaceAll(/\s/g, ''));

/** Maximum number of signatures, the same that consumers of signature stores read. */
export const MAX_SIGNATURES = 9;

const RULES = { domain: 'signature' };

/**
 * From a folder with files `sha256=HEX/signature-N`, N from 1, like a signature store, or a file with
 * ConfigMaps.
 *
 * @throws ConfigError `signature.unreadable`, `signature.too-large`, `signature.no-config-map`,
 * `manifest.malformed`
 */
export function readSignatureFiles(path: string, digest: Digest): readonly Buffer[] {
  const isFolder = readListed(path, RULES, () => statSync(path)).isDirectory();
  return isFolder ? readFolder(join(path, `sha256=${hexOf(digest)}`)) : readMaps(path, digest);
}

function readFolder(folder: string): readonly Buffer[] {
  const found: Buffer[] = [];
  for (let number = 1; number <= MAX_SIGNATURES; number++) {
    const path = join(folder, `signature-${number}`);
    const bytes = readListed(path, RULES, () =>
      unlessAbsent(() => readInputFile(path, { ...RULES, limit: MAX_SIGNATURE_SIZE })),
    );
    if (bytes === undefined) return found;
    found.push(bytes);
  }
  return found;
}

/** JSON is YAML. The user names the file, so ConfigMaps need no labels to be found by. */
function readMaps(path: string, digest: Digest): readonly Buffer[] {
  const text = readListed(path, RULES, () => readInputFile(path, RULES)).toString('utf8');
  const documents = splitDocuments({ name: basename(path), text });
  if (documents.every(({ document }) => listConfigMaps(document).length === 0))
    throw noConfigMap(path);
  return listSignaturesFor(
    digest,
    documents.map(({ document }) => document),
  );
}

export const listSignaturesFor = (
  digest: Digest,
  documents: readonly Document[],
): readonly Buffer[] =>
  documents
    .flatMap(listConfigMaps)
    .flatMap(listStoredSignatures)
    .filter((one) => one.digest === digest)
    .slice(0, MAX_SIGNATURES)
    .map(({ signature }) => Buffer.from(signature, 'base64'));

/** Keys that sign releases, and the time at which they must be valid, in seconds since 1970. */
export type TrustedKeys = { readonly keys: readonly SigningKey[]; readonly now: number };

/**
 * @param path file with public keys; default: the keys of Red Hat
 * @throws ConfigError `signature.unreadable`, `signature.too-large`; the errors of `parseKeys`
 */
export function readReleaseKeys(path: string | undefined): TrustedKeys {
  const now = Date.now() / 1000;
  if (path === undefined) return { now, keys: parseKeys(Buffer.from(RED_HAT_KEYS), now) };
  const rules = { ...RULES, limit: 1 << 20 };
  return {
    now,
    keys: parseKeys(
      readListed(path, rules, () => readInputFile(path, rules)),
      now,
    ),
  };
}

/** The document itself, or the items of a List, as `oc get -o yaml` writes it. */
function listConfigMaps(document: Document): readonly object[] {
  const object = document.toJSON() as { readonly kind?: unknown; readonly items?: unknown };
  const items: readonly unknown[] = Array.isArray(object.items) ? object.items : [];
  const isConfigMap = (value: unknown): value is object =>
    typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'ConfigMap';
  return [object, ...items].filter(isConfigMap);
}

const noConfigMap = (path: string): ConfigError =>
  new ConfigError('signature.no-config-map', `file "${path}" has no ConfigMap`, {
    expected: 'ConfigMaps with binaryData sha256-HEX-N, or a List of them',
    found: 'none',
    hint: 'name the file that "oc adm release mirror" or oc-mirror wrote, or a folder sha256=HEX/signature-N',
  });

/**
 * As oc and oc-mirror carry them: release key 2 (567E 347A D004 4ADE 55BA 8A5F 199E 2F91 FD43 1D51) and beta
 * key 2 (B08B 659E E86A F623 BC90 E8DB 938A 80CA F215 41EB). Armoured, each with its signature over itself.
 */
export const RED_HAT_KEYS = `
-----BEGIN PGP PUBLIC KEY BLOCK-----
Comment: Use "gpg --dearmor" for unpacking

mQINBErgSTsBEACh2A4b0O9t+vzC9VrVtL1AKvUWi9OPCjkvR7Xd8DtJxeeMZ5eF
0HtzIG58qDRybwUe89FZprB1ffuUKzdE+HcL3FbNWSSOXVjZIersdXyH3NvnLLLF
0DNRB2ix3bXG9Rh/RXpFsNxDp2CEMdUvbYCzE79K1EnUTVh1L0Of023FtPSZXX0c
u7Pb5DI5lX5YeoXO6RoodrIGYJsVBQWnrWw4xNTconUfNPk0EGZtEnzvH2zyPoJh
XGF+Ncu9XwbalnYde10OCvSWAZ5zTCpoLMTvQjWpbCdWXJzCm6G+/hx9upke546H
5IjtYm4dTIVTnc3wvDiODgBKRzOl9rEOCIgOuGtDxRxcQkjrC+xvg5Vkqn7vBUyW
9pHedOU+PoF3DGOM+dqv+eNKBvh9YF9ugFAQBkcG7viZgvGEMGGUpzNgN7XnS1gj
/DPo9mZESOYnKceve2tIC87p2hqjrxOHuI7fkZYeNIcAoa83rBltFXaBDYhWAKS1
PcXS1/7JzP0ky7d0L6Xbu/If5kqWQpKwUInXtySRkuraVfuK3Bpa+X1XecWi24JY
HVtlNX025xx1ewVzGNCTlWn1skQN2OOoQTV4C8/qFpTW6DTWYurd4+fE0OJFJZQF
buhfXYwmRlVOgN5i77NTIJZJQfYFj38c/Iv5vZBPokO6mffrOTv3MHWVgQARAQAB
tDNSZWQgSGF0LCBJbmMuIChyZWxlYXNlIGtleSAyKSA8c2VjdXJpdHlAcmVkaGF0
LmNvbT6JAjYEEwEIACACGwMGCwkIBwMCBBUCCAMEFgIDAQIeAQIXgAUCSuBJPAAK
CRAZni+R/UMdUfIkD/9m3HWv07uJG26R3KBexTo2FFu3rmZs+m2nfW8R3dBX+k0o
AOFpgJCsNgKwU81LOPrkMN19G0+Yn/ZTCDD7cIQ7dhYuDyEX97xh4une/EhnnRuh
ASzR+1xYbj/HcYZIL9kbslgpebMn+AhxbUTQF/mziug3hLidR9Bzvygq0Q09E11c
OZL4BU6J2HqxL+9m2F+tnLdfhL7MsAq9nbmWAOpkbGefc5SXBSq0sWfwoes3X3yD
Q8B5Xqr9AxABU7oUB+wRqvY69ZCxi/BhuuJCUxY89ZmwXfkVxeHl1tYfROUwOnJO
GYSbI/o41KBK4DkIiDcT7QqvqvCyudnxZdBjL2QU6OrIJvWmKs319qSF9m3mXRSt
ZzWtB89Pj5LZ6cdtuHvW9GO4qSoBLmAfB313pGkbgi1DE6tqCLHlA0yQ8zv99OWV
cMDGmS7tVTZqfX1xQJ0N3bNORQNtikJC3G+zBCJzIeZleeDlMDQcww00yWU1oE7/
To2UmykMGc7o9iggFWR2g0PIcKsA/SXdRKWPqCHG2uKHBvdRTQGupdXQ1sbV+AHw
ycyA/9H/mp/NUSNM2cqnBDcZ6GhlHt59zWtEveiuU5fpTbp4GVcFXbW8jStj8j8z
1HI3cywZO8+YNPzqyx0JWsidXGkfzkPHyS4jTG84lfu2JG8m/nqLnRSeKpl20ZkC
DQRJpAMwARAAtv3O2z9ZR0N10nMWyJNC0FntWDoom0AUS8H/EouT5LYLbj4m05Cq
WY8PKeA/nzO4w9VlM1BNF+7V4Npf3lJTDOHcOlyQENQJhDrZcEoO66zLU7zNAARL
SOypunwurFOkbQTHXKg9XB/+nW7H4fJrs51QO1JV/j0QR1c3Vs4+svIfOHQY6IM3
G2LvR3s6oI/5S84nKrEmT8/VHV4kU0QCIafFd9AQ/LkWmmtCgw5w+iMyb9w/T8UF
mxTOGddhjfS8nmapg+26Ss2Zlxv93a7311YrF2l6dzNO7dzZQWtw7fDRSCmdAxUV
wc+W788UVZnR+g7ZA1lwzzrflnZta2awjq8khaQWUEaR8NdnqNTNZYqwDSKL+2fl
dUIf2gcY+RFLt9rvWaYwDzzbUBehfyo2qBxx5hEALo+Ay3seC2OuOh79a3L9okBb
gnbyykBkohQa32R9I/yF9/9CV0JWc29zLjBT8S1xgKAFfVD/0sP1k5gLk8xVZhtd
1GBXjMK06DoqnF9lXCtGgtRQnEz9s+CVtz7Fr1PK1A0VGH6F6L3O3oOFZ+cB7dDQ
WLDYWIgAH99tAFCB80GWIt/CYFcLiXxbuN7SWROFYoPvkUKurbBMfRbc9xMEUXyf
c/ZhLxIonmZvr2zrzLyLophVT0gpix/myOuPSvHmZVUVrMdxFwlW9J0AEQEAAbQw
UmVkIEhhdCwgSW5jLiAoYmV0YSBrZXkgMikgPHNlY3VyaXR5QHJlZGhhdC5jb20+
iQI2BBMBCAAgAhsDBgsJCAcDAgQVAggDBBYCAwECHgECF4AFAkpSM+gACgkQk4qA
yvIVQesUdA/9F94ainS9eCMpGyYzhgoPTMJL1zp7OKDEt0Yf8FB5s/zTqiQ7qujA
i6frKmvswV6KRGFoTXeEtydW1JlRyFZFfao9wYhyK8X39WBzjdNlCH4E9hRLinGC
hpV91q/UI4DixoTS9mqt7JRFrIByhRkXhb2UBcWfXTn5NP+o+CPB9NhknH6b9DWh
8Iz4QN4dB7UJ8mk/356hvzp/CnjhYixkE31iBbkTpQPiYY0uJLrejk3o3herFBhb
6vC6YUrjbnzcm5KP+aVY73GQMWKPK+ZczVsQY3k2SB/uKRiiKzpHICTCF39zfMGp
UiNJ15nrCI6LfFhyFcwaoaQk2DQpj9N63RmNvU34JKiTkhXMTXE3HZPBa8Jym/t2
tlvMM7aV+liXcdnBPaWYIRyBBSroz+gYQznCBVXWJsx4/CKWZRzTimGQmsRIcjkG
95dsvX2pwcOr73wfTbVDlVdAn+1VQMKb58gErow4RWqVwJ+SyZmuRDYonsSHp9Jt
5kJXwZP3UPudWeTAB9xaWaXHbcILraYnw1+wgr/W6oosJEi7SquiAVHaIyc8YX4L
JRhScNA6Flg3CAc8WFyH4Y+ZhUTBAu4el7HaYpdE9bY0lR0wJsXFIm6+52+LXxYt
QhyZAjgzMT6GUvoWrdNeNMCXo4pk+xUNQgVjSFuHGLkfxg40oh8S5R4=
=GmdY
-----END PGP PUBLIC KEY BLOCK-----
`;
