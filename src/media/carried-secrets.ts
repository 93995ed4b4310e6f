import { decodeFileContent, parseResolved, type IgnitionConfig } from '../ignition/index.ts';
import { type IsoImage, openIso } from '../iso/index.ts';
import { type Customisation, hasSecrets, readCustomisation } from './customize/read.ts';
import { DEPLOYMENT } from './describe.ts';
import { findCarriedDisk, openDisk } from './disk-image.ts';
import type { MediaIndex } from './media-index.ts';
import { attempt, readBootstrapIgnition, readEmbeddedIgnition } from './open.ts';

/* Owns the answer whether a medium carries secrets, by its own bytes. */

/**
 * For messages; empty if others may read the medium. An installation ISO always has a pull secret; an upgrade
 * ISO has no config.
 */
export async function listCarriedSecrets(
  iso: IsoImage,
  { product }: Pick<MediaIndex, 'product'>,
): Promise<readonly string[]> {
  if (product === 'installation-iso') return ['a pull secret'];
  if (product === DEPLOYMENT) return listDeployedSecrets(iso);
  if (product !== 'live-iso' && product !== 'recovery-iso') return [];
  return listConfigSecrets(iso);
}

/** Secrets of the system that deploys, and of the system in the disk image. */
async function listDeployedSecrets(iso: IsoImage): Promise<readonly string[]> {
  const image = await findCarriedDisk(iso);
  const disk = image && (await openDisk(image));
  const own = await listConfigSecrets(iso);
  const carried = disk ? await listConfigSecrets(await openIso(disk.recovery.access)) : [];
  return [...new Set([...own, ...carried])];
}

async function listConfigSecrets(iso: IsoImage): Promise<readonly string[]> {
  const configs = await readConfigs(iso);
  const hasPassword = configs.some(
    ({ passwd }) => passwd?.users?.some(({ passwordHash }) => Boolean(passwordHash)) === true,
  );
  const { value: site } = await attempt(() => readCustomisation(iso));
  return [
    ...(hasPassword ? ['a password'] : []),
    ...(configs.some(hasSecretFile) ? ['a pull secret or a private key'] : []),
    ...(site ? describeSite(site) : []),
  ];
}

function describeSite(site: Customisation): readonly string[] {
  if (site.configImage) return ['the private keys of a cluster'];
  return hasSecrets(site) ? ['values of a site'] : [];
}

/** The configs on a medium; one without areas, or with areas that hold no config, has fewer. */
async function readConfigs(iso: IsoImage): Promise<readonly IgnitionConfig[]> {
  const texts = [
    await attempt(() => readEmbeddedIgnition(iso)),
    await attempt(() => readBootstrapIgnition(iso)),
  ];
  return texts.flatMap(({ value }) =>
    value === undefined ? [] : parseResolved(value, 'Ignition config of the medium'),
  );
}

const SECRET_TEXT = /"auths"\s*:\s*\{\s*"|-----BEGIN [A-Z ]*PRIVATE KEY-----/;

const hasSecretFile = ({ storage }: IgnitionConfig): boolean =>
  (storage?.files ?? []).some((file) =>
    SECRET_TEXT.test(decodeFileContent(file)?.toString('latin1') ?? ''),
  );
