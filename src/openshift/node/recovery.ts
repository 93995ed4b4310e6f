import { renderText } from './registry.ts';

/* The boot menu of a disk whose partition `agentboot` is a live ISO. */

/** Titles of openshift/appliance, by which its documents name the entries. */
const TITLES = {
  factory: 'Agent-Based Installer',
  installed: 'Recovery: Agent-Based Installer (Reinstall Cluster)',
} as const;

export type DiskMenu = {
  /** A disk that boots the installer at once, or an installed host, which boots it only when asked. */
  readonly stage: keyof typeof TITLES;
  /** Further kernel arguments. */
  readonly kargs?: readonly string[];
};

/** Text for the end of `grub.cfg`. Only the factory's entry is the default: hosts must not reinstall themselves. */
export function renderDiskMenu({ stage, kargs = [] }: DiskMenu): string {
  const title = TITLES[stage];
  return renderText('files/disk-menu.cfg', {
    title,
    default: stage === 'factory' ? `set default='${title}'\n` : '',
    kargs: kargs.map((word) => ` ${word}`).join(''),
  });
}
