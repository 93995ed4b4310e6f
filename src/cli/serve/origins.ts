import { Option } from 'commander';
import { refuseOption } from '../options.ts';

/* Owns the options that name the service as its clients do, and the origins of their pages. */

export function parsePublicUrl(text: string): string {
  if (/^https?:\/\/[^?#]+$/.test(text) && URL.canParse(text)) return text.replace(/\/+$/, '');
  throw refuseOption('usage.public-url', text, { expected: 'a URL with http:// or https://' });
}

export const createOriginOption = (): Option =>
  new Option(
    '--cors-origin <origin>',
    'origin whose pages may use the API, such as https://console.example.com; may be repeated',
  )
    .argParser(addOrigin)
    .default([]);

/** Reads an origin as browsers send it: a scheme, a host, and a port that is not the usual one. */
function addOrigin(text: string, origins: readonly string[]): readonly string[] {
  if (/^https?:\/\//.test(text) && URL.canParse(text) && new URL(text).origin === text) {
    return [...origins, text];
  }
  throw refuseOption('usage.cors-origin', text, {
    expected: 'a scheme and a host, such as https://console.example.com, without a path',
  });
}

export const rulesOf = ({
  requireRegistry,
  corsOrigin,
}: {
  readonly requireRegistry: readonly string[];
  readonly corsOrigin: readonly string[];
}) => ({ requiredRegistries: requireRegistry, corsOrigins: corsOrigin });
