import type { Free } from '../document/shape.ts';

// Looks into data that no shape describes. What has another type reads as absent.

export type FreeMap = Readonly<Record<string, Free>>;

export const isMapping = (value: Free | undefined): value is FreeMap =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Empty where there is none. */
export const mapOf = (value: Free | undefined): FreeMap => (isMapping(value) ? value : {});

/** Empty where there is none. */
export const listOf = (value: Free | undefined): readonly Free[] =>
  Array.isArray(value) ? (value as readonly Free[]) : [];

/** Numbers and flags too, as they are written in JSON. */
export const textOf = (value: Free | undefined): string | undefined =>
  value === undefined || value === null || typeof value === 'object' ? undefined : String(value);
