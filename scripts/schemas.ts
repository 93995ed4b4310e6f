import { APPLIANCE } from '../src/config/appliance-shape.ts';
import { JSON_RULES, YAML_RULES } from '../src/shape/decode.ts';
import { toJsonSchema } from '../src/shape/to-json-schema.ts';
import { IMAGE_BASED_CONFIG, INSTALL_CONFIG } from '../src/sites/documents.ts';
import { INSTALLATION } from '../src/sites/installation-shape.ts';

/* The schemas for editors, from the shapes that the program reads the documents with. */

const format = (id: string, schema: object): string =>
  `${JSON.stringify({ $schema: 'http://json-schema.org/draft-07/schema#', $id: `urn:sealift:${id}`, ...schema }, null, 2)}\n`;

export const renderApplianceSchema = (): string =>
  format('appliance-config:v1beta1', {
    title: 'ApplianceConfig',
    ...(toJsonSchema(APPLIANCE, JSON_RULES) as object),
  });

export const renderInstallationSchema = (): string =>
  format('image-based-installation-config:v1beta1', {
    title: 'ImageBasedInstallationConfig',
    ...(toJsonSchema(INSTALLATION, JSON_RULES) as object),
  });

/** Both files of a site. */
export const renderSiteSchema = (): string =>
  format('site:v1', {
    title: 'InstallConfig or ImageBasedConfig',
    description:
      'The files of a site: install-config.yaml, and image-based-config.yaml, which has the kind ImageBasedConfig. Unknown keys are refused.',
    if: {
      type: 'object',
      required: ['kind'],
      properties: { kind: { const: 'ImageBasedConfig' } },
    },
    then: toJsonSchema(IMAGE_BASED_CONFIG, YAML_RULES),
    else: toJsonSchema(INSTALL_CONFIG, YAML_RULES),
  });
