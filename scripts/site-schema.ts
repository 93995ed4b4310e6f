import type { Shape } from '../src/shape/shape.ts';
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
      then: toSchema(IMAGE_BASED_CONFIG),
      else: toSchema(INSTALL_CONFIG),
    },
    null,
    2,
  )}\n`;

/** A key without a value counts as absent. */
function toSchema(shape: Shape): object {
  switch (shape.kind) {
    case 'text':
      return { type: ['string', 'null'] };
    case 'flag':
      return { type: ['boolean', 'null'] };
    case 'integer':
      return { type: ['integer', 'null'] };
    case 'free':
      return {};
    case 'list':
      return { type: ['array', 'null'], items: toSchema(shape.of) };
    case 'map':
      return { type: ['object', 'null'], additionalProperties: toSchema(shape.of) };
    case 'record': {
      const members = Object.entries(shape.members);
      return {
        type: ['object', 'null'],
        additionalProperties: false,
        properties: Object.fromEntries(members.map(([name, one]) => [name, toSchema(one)])),
      };
    }
  }
}
