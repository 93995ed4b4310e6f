import { YAML_RULES } from '../src/shape/decode.ts';
import { toJsonSchema } from '../src/shape/to-json-schema.ts';
import { IMAGE_BASED_CONFIG, INSTALL_CONFIG } from '../src/sites/documents.ts';

/** The schema of both files of a site, from the shapes that the program reads them with. */
export const renderSiteSchema = (): string =>
  `${JSON.stringify(
    {
      $schema: 'http://json-schema.org/draft-07/schema#',
      $id: 'urn:sealift:site:v1',
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
    },
    null,
    2,
  )}\n`;
