import { join } from 'node:path';

/** Where what is made of one site goes. Absolute paths. */
export type SitePlaces = {
  readonly iso: string;
  readonly kubeconfig: string;
  readonly password: string;
  /** Keys, ids and password: one file a generation, from 1, none of which is ever written again. */
  readonly generation: (number: number) => string;
  /** Numbers of generations as they were used, where that is not their own order. */
  readonly order: string;
  /** What was left of an identity that no generation has; numbered from 1, never written again. */
  readonly remains: (number: number, file: 'iso' | 'kubeconfig' | 'password') => string;
  /** What the files before were made from: written last. */
  readonly record: string;
};

/** Where builds keep what later builds need; no DNS label, and so no site, is called so. */
export const STATE_DIRECTORY = '_state';

export const stateDirectoryOf = (directory: string): string => join(directory, STATE_DIRECTORY);

/** Names of sites are DNS labels: none of these files can be another site's. */
export const placesOf = (directory: string, name: string): SitePlaces => ({
  iso: join(directory, `${name}.iso`),
  kubeconfig: join(directory, name, 'auth', 'kubeconfig'),
  password: join(directory, name, 'auth', 'kubeadmin-password'),
  ...statePlacesOf(directory, name),
});

/** What the only site of a directory is called: its directory may be called anything. */
export const DROP_IN_NAME = 'site';

/** The names of openshift-install, for one site in a directory of its own. */
const dropInPlaces = (directory: string): SitePlaces => ({
  iso: join(directory, 'imagebasedconfig.iso'),
  kubeconfig: join(directory, 'auth', 'kubeconfig'),
  password: join(directory, 'auth', 'kubeadmin-password'),
  ...statePlacesOf(directory, DROP_IN_NAME),
});

/** Where everything is written, and whether it is that of one site with the names of openshift-install. */
export type OutputFolder = { readonly out: string; readonly dropIn: boolean };

export const placesFor = ({ dropIn, out }: OutputFolder, name: string): SitePlaces =>
  dropIn ? dropInPlaces(out) : placesOf(out, name);

function statePlacesOf(
  directory: string,
  name: string,
): Pick<SitePlaces, 'generation' | 'order' | 'remains' | 'record'> {
  const inState = (file: string): string => join(stateDirectoryOf(directory), file);
  return {
    generation: (number) => inState(`${name}.${number}.json`),
    remains: (number, file) => inState(`${name}.lost-${number}.${file}`),
    order: inState(`${name}.order.json`),
    record: inState(`${name}.made.json`),
  };
}
