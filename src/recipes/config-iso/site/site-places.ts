import { join } from 'node:path';

/** Where what is made of one site goes. Absolute paths. */
export type SitePlaces = {
  readonly iso: string;
  readonly kubeconfig: string;
  readonly password: string;
  /** Keys, ids and password, for later builds. */
  readonly state: string;
  /** The state that the last new one took the place of. */
  readonly stateBefore: string;
  /** What the files before were made from: written last. */
  readonly record: string;
};

/** Where builds keep what later builds need. */
export const stateDirectoryOf = (directory: string): string => join(directory, '.sealift');

/** Names of sites are DNS labels: none of these files can be another site's. */
export const placesOf = (directory: string, name: string): SitePlaces => ({
  iso: join(directory, `${name}.iso`),
  kubeconfig: join(directory, name, 'auth', 'kubeconfig'),
  password: join(directory, name, 'auth', 'kubeadmin-password'),
  state: join(stateDirectoryOf(directory), `${name}.json`),
  stateBefore: join(stateDirectoryOf(directory), `${name}.before.json`),
  record: join(stateDirectoryOf(directory), `${name}.made.json`),
});

/** The names of openshift-install, for one site in a directory of its own. */
export const dropInPlaces = (directory: string): SitePlaces => ({
  iso: join(directory, 'imagebasedconfig.iso'),
  kubeconfig: join(directory, 'auth', 'kubeconfig'),
  password: join(directory, 'auth', 'kubeadmin-password'),
  state: join(stateDirectoryOf(directory), 'site.json'),
  stateBefore: join(stateDirectoryOf(directory), 'site.before.json'),
  record: join(stateDirectoryOf(directory), 'site.made.json'),
});
