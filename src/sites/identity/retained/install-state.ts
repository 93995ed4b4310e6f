import { withoutUndefined, isObject } from '../../../base/lists.ts';
import { manifestError, type ShownFile } from '../../../shape/go-json.ts';

/** File in which openshift-install remembers what it made, in its directory. */
export const INSTALL_STATE_FILE = '.openshift_install_state.json';

/** Texts that an openshift-install state holds; absent where it did not come that far. */
export type InstallState = {
  /** manifest.json of the configuration ISO. */
  readonly manifest?: string;
  readonly kubeconfig?: string;
  readonly password?: string;
  /** PEM. This key is in no other file that openshift-install leaves. */
  readonly adminSignerKey?: string;
};

/**
 * Reads a state of `openshift-install image-based create config-image`: an object of assets by their
 * Go types, bytes in base64 (docs/decisions/0031).
 *
 * @throws ConfigError `retained.manifest` when it is not such a file
 */
export function parseInstallState(text: string, file: ShownFile): InstallState {
  const assets = parseAssets(text, file);
  const manifest = readBytes(assets, '*configimage.ClusterConfiguration', 'File', 'Data');
  const kubeconfig = readBytes(assets, '*kubeconfig.ImageBasedAdminClient', 'File', 'Data');
  const password = findMember(assets, ['*password.KubeadminPassword', 'Password']);
  const adminSignerKey = readBytes(assets, '*tls.AdminKubeConfigSignerCertKey', 'KeyRaw');
  return {
    ...withoutUndefined({ manifest, kubeconfig }),
    ...(typeof password === 'string' && { password }),
    ...withoutUndefined({ adminSignerKey }),
  };
}

/** The parser's own message would quote the text, keys and all. */
function parseAssets(text: string, file: ShownFile): Readonly<Record<string, unknown>> {
  let assets: unknown;
  try {
    assets = JSON.parse(text);
  } catch {
    throw manifestError(file, 'invalid JSON syntax');
  }
  if (isObject(assets)) return assets;
  throw manifestError(file, 'all of it should be an object');
}

function readBytes(assets: unknown, ...path: readonly string[]): string | undefined {
  const member = findMember(assets, path);
  return typeof member === 'string' ? Buffer.from(member, 'base64').toString('utf8') : undefined;
}

const findMember = (value: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>((inner, key) => (isObject(inner) ? inner[key] : undefined), value);
