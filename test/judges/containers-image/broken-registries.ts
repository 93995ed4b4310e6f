import { hexOf, type Digest } from '../../../src/base/digest.ts';
import {
  type Change,
  type Config,
  fileOf,
  readFromMedium,
  replaceIn,
  replaceText,
  unitOf,
} from './alter.ts';
import type { Broken } from './broken.ts';
import type { GoodMedium } from './media.ts';

const PART = 'registry';
const BASE = '4.21';
const UNIT = 'start-local-registry.service';
const IMAGE = '/registry/images/registry';
const SCRIPTS = '/usr/local/bin';

const editUnit = (change: readonly [string, string]): Change => ({
  bootstrap: (config) => {
    const unit = unitOf(config, UNIT);
    unit.contents = replaceText(unit.contents ?? '', change);
  },
});

const edit = (bootstrap: (config: Config) => void): Change => ({ bootstrap });

type Manifest = { config: { digest: Digest }; layers: { digest: Digest }[] };

const readImage = ({ path }: GoodMedium): Manifest =>
  JSON.parse(readFromMedium(path, `${IMAGE}/manifest.json`).toString('utf8')) as Manifest;

const everything = ({ images }: GoodMedium): readonly string[] => [
  ...images,
  'registry.appliance.openshift.com:22625/redhat/redhat-operator-index:v4.21',
];

/** The registry is not what hosts expect, or does not start. */
export const BROKEN_REGISTRIES: readonly Broken[] = [
  {
    name: 'the registry listens at another port',
    base: BASE,
    part: PART,
    refused: everything,
    change: () => editUnit(['REGISTRY_HTTP_ADDR=:22625', 'REGISTRY_HTTP_ADDR=:22620']),
  },
  {
    name: 'the certificate of the registry is for another host',
    base: '4.21',
    part: PART,
    refused: everything,
    change: () =>
      edit((config) => {
        replaceIn(config, `${SCRIPTS}/certify-local-registry.sh`, [
          "domain='registry.appliance.openshift.com'",
          "domain='registry.example.com'",
        ]);
      }),
  },
  {
    name: 'the host does not know the name of its registry',
    base: '4.21',
    part: PART,
    refused: everything,
    change: () =>
      edit((config) => {
        replaceIn(config, `${SCRIPTS}/setup-local-registry.sh`, [
          "domain='registry.appliance.openshift.com'",
          "domain='registry.example.com'",
        ]);
      }),
  },
  {
    name: 'the unit of the registry has another name',
    base: BASE,
    part: PART,
    change: () =>
      edit((config) => {
        unitOf(config, UNIT).name = 'start-local-registry.servce';
      }),
  },
  {
    name: 'the unit of the registry is gone',
    base: BASE,
    part: PART,
    change: () =>
      edit((config) => {
        const units = config.systemd?.units ?? [];
        units.splice(units.indexOf(unitOf(config, UNIT)), 1);
      }),
  },
  {
    name: 'the unit of the registry is not enabled',
    base: BASE,
    part: PART,
    change: () =>
      edit((config) => {
        unitOf(config, UNIT).enabled = false;
      }),
  },
  {
    name: 'the unit of the registry is installed for nothing',
    base: BASE,
    part: PART,
    change: () => editUnit(['[Install]', '[Instal]']),
  },
  {
    name: 'the unit of the registry has a command with a relative path',
    base: BASE,
    part: 'ignition',
    change: () => editUnit(['ExecStart=/usr/bin/podman', 'ExecStart=./podman']),
  },
  {
    name: 'the unit of the registry has a section without an end',
    base: BASE,
    part: 'ignition',
    change: () => editUnit(['[Service]', '[Service']),
  },
  {
    name: 'the unit of the registry works in a relative folder',
    base: BASE,
    part: 'ignition',
    change: () => editUnit(['[Service]', '[Service]\nWorkingDirectory=relative']),
  },
  {
    name: 'a script of the registry is gone',
    base: BASE,
    part: PART,
    change: () =>
      edit(({ storage }) => {
        storage.files = storage.files.filter(
          ({ path }) => path !== `${SCRIPTS}/setup-local-registry.sh`,
        );
      }),
  },
  {
    name: 'a script that a script of the registry runs is gone',
    base: BASE,
    part: 'ignition',
    change: () =>
      edit(({ storage }) => {
        storage.files = storage.files.filter(
          ({ path }) => path !== `${SCRIPTS}/mount-agent-data.sh`,
        );
      }),
  },
  {
    name: 'a script of the registry is not executable',
    base: BASE,
    part: 'ignition',
    change: () =>
      edit((config) => {
        fileOf(config, `${SCRIPTS}/setup-local-registry.sh`).mode = 0o644;
      }),
  },
  {
    name: 'the environment of the registry is gone',
    base: BASE,
    part: PART,
    change: () =>
      edit(({ storage }) => {
        storage.files = storage.files.filter(({ path }) => path !== '/etc/assisted/registry.env');
      }),
  },
  {
    name: 'the unit runs an image that nothing loads',
    base: BASE,
    part: PART,
    change: () =>
      editUnit(['localhost/appliance-registry:latest', 'localhost/other-registry:latest']),
  },
  {
    name: 'the image of the registry has no manifest',
    base: BASE,
    part: PART,
    change: () => ({ files: { [`${IMAGE}/manifest.json`]: null } }),
  },
  {
    name: 'the image of the registry is gone',
    base: BASE,
    part: PART,
    change: () => ({ files: { [IMAGE]: null } }),
  },
  {
    name: 'a layer of the image of the registry is gone',
    base: BASE,
    part: PART,
    change: (medium) => {
      const layer = readImage(medium).layers.at(-1)?.digest ?? 'sha256:';
      return { files: { [`${IMAGE}/${hexOf(layer)}`]: null } };
    },
  },
  {
    name: 'the config of the image of the registry is that of another image',
    base: BASE,
    part: PART,
    change: (medium) => {
      const { config } = readImage(medium);
      const path = `${IMAGE}/${hexOf(config.digest)}`;
      const text = readFromMedium(medium.path, path).toString('utf8');
      return { files: { [path]: replaceText(text, ['linux', 'lunix']) } };
    },
  },
];
